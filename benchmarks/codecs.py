"""How long it takes to read what nodes and pods say, beside json.loads of the same facts."""

import json
from collections.abc import Callable
from time import perf_counter

from benchmarks.clusters import a_node
from tessera.model.allocations import Allocation, CardShare
from tessera.model.annotations.allocations import decode_containers, encode_containers
from tessera.model.annotations.registers import RegisterFormat, decode_register, encode_register
from tessera.model.pods import read_pod_request
from tessera.vendors.loading import load_catalogue
from tessera.vendors.rules import refine

TURNS = 2_000


def main() -> None:
    devices = a_node(0).devices
    catalogue = load_catalogue()
    forms = {form: encode_register(devices, form) for form in (RegisterFormat.SEED, RegisterFormat.JSON)}
    shares = tuple(
        CardShare(uuid=device.uuid, vendor="NVIDIA", memory_mib=81920, cores_percent=100) for device in devices
    )
    allocated = encode_containers(Allocation("node", (shares,)).containers)
    limits = {"nvidia.com/gpu": "1", "nvidia.com/gpumem": "8000", "cpu": "4", "memory": "16Gi"}
    containers = [{"name": "main", "resources": {"limits": limits}}]
    pod = {"metadata": {"name": "train-0", "namespace": "default"}, "spec": {"containers": containers}}
    as_json = forms[RegisterFormat.JSON]
    _print("json.loads of eight cards (floor)", lambda: json.loads(as_json))
    for form, text in forms.items():
        _print(
            f"register of eight cards, {form}", lambda text=text: decode_register(text, vendor="NVIDIA", where="node")
        )
    _print("allocation of eight cards", lambda: decode_containers(allocated, "pod"))
    _print("request of a pod", lambda: read_pod_request(pod, catalogue, refine))


def _print(what: str, call: Callable[[], object]) -> None:
    began = perf_counter()
    for _ in range(TURNS):
        call()
    print(f"  {what:<36} {(perf_counter() - began) / TURNS * 1e6:8.1f} µs")


if __name__ == "__main__":
    main()
