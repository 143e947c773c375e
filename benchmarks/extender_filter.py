"""How long kube-scheduler waits for /filter, over HTTP on the loopback, and what the process weighs.

Half of the nodes have cards that are too small, so that half of the answer is sentences. Each pod is scored and then
takes the cards that it was offered, so that between any two questions the ledger has changed; only the write to the
API is left out. Floor, in the same run: /healthz of the same server.
"""

import http.client
import json
import subprocess
import sys
import time
from collections.abc import Sequence
from statistics import quantiles
from typing import Any

import msgspec
import structlog
import uvloop
from prometheus_client import CollectorRegistry

from benchmarks.memory import resident_bytes
from tessera.apps.serving import make_app, serve
from tessera.kube.caching import Change
from tessera.kube.objects import ObjectKey
from tessera.kube.pods import Pod
from tessera.model.annotations.binding import bind_marks
from tessera.model.extender import ExtenderArgs, read_args
from tessera.model.requests import PolicyChoice
from tessera.scheduler.extender import Extender
from tessera.scheduler.nodes import CachedNode
from tessera.scheduler.phases import Phases
from tessera.scheduler.world import World
from tessera.vendors.loading import load_catalogue
from tessera.vendors.reporting import report_capacity, report_cards
from tessera.vendors.simulated import parse_plan, simulate

CATALOGUE = load_catalogue()
SIZES = ((1_000, 10_000), (5_000, 10_000))
ASKED = 400
PORT = 18_090
LARGE, SMALL = "8xA100-SXM4-80GB", "8xV100-SXM2-16GB"
SHAPES = (2_000, 4_000, 8_000, 10_000)


def main() -> None:
    print("the extender over HTTP, half of the nodes refused  p50 ms   p99 ms   max ms")
    for nodes, pods in SIZES:
        measure(nodes, pods)


def measure(nodes: int, pods: int) -> None:
    command = [sys.executable, "-m", "benchmarks.extender_filter", str(nodes), str(pods)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout is not None
        try:
            megabytes = float(server.stdout.readline())
            client = http.client.HTTPConnection("127.0.0.1", PORT)
            names = [node_name(number) for number in range(nodes)]
            questions = [filter_args(number, names) for number in range(ASKED)]
            verbs = ("/filter", "/prioritize", "/take")
            asked = [[ask(client, verb, question) for verb in verbs] for question in questions]
            filtered, scored, _ = zip(*asked, strict=True)
            report(f"/filter, {nodes} x 8, {pods} pods", filtered)
            report("/prioritize", scored)
            report("floor: /healthz", [ask(client, "/healthz", None) for _ in range(ASKED)])
            print(f"  the server, resident   {megabytes:8.0f} MB before, {resident_of(server.pid):.0f} MB after")
        finally:
            server.terminate()


def ask(client: http.client.HTTPConnection, path: str, body: bytes | None) -> float:
    began = time.perf_counter()
    client.request("POST" if body else "GET", path, body)
    answer = client.getresponse().read()
    seconds = time.perf_counter() - began
    if path == "/filter":
        result = json.loads(answer)
        assert not result["Error"], result["Error"]
        assert 0.8 < len(result["NodeNames"]) / len(result["FailedNodes"]) <= 1
    return seconds


def report(what: str, seconds: Sequence[float]) -> None:
    cuts = quantiles(seconds, n=100)
    print(f"  {what:44} {cuts[49] * 1e3:8.3f} {cuts[98] * 1e3:8.3f} {max(seconds) * 1e3:8.3f}", flush=True)


def filter_args(number: int, names: list[str]) -> bytes:
    pod = a_pod(f"asking-{number}", 20_000 + 4_000 * (number % 4))
    return json.dumps({"Pod": pod, "Nodes": None, "NodeNames": names}).encode()


def a_pod(name: str, memory: int) -> dict[str, Any]:
    limits = {"nvidia.com/gpu": "1", "nvidia.com/gpumem": str(memory)}
    return {
        "metadata": {"name": name, "namespace": "default", "uid": f"uid-{name}"},
        "spec": {"containers": [{"name": "main", "image": "x", "resources": {"limits": limits}}]},
    }


def node_name(number: int) -> str:
    return f"gpu-{number:05}"


def run_server(nodes: int, pods: int) -> None:
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(40))
    world = make_world(nodes, pods)
    phases = Phases(world)

    async def take(body: bytes) -> bytes:
        """What bind does, without the API."""
        uid = read_args(body, ExtenderArgs).pod["metadata"]["uid"]
        world.ledger.commit(uid)
        return b""

    extender = Extender(phases, binder=None, is_ready=lambda: True)  # type: ignore[arg-type] # nothing is written here
    verbs = {"/filter": extender.filter, "/prioritize": extender.prioritize, "/take": take}
    app = make_app(verbs, is_ready=lambda: True, metrics=CollectorRegistry())
    print(resident_bytes() / 1e6, flush=True)
    uvloop.run(serve(app, "127.0.0.1", PORT))


def make_world(nodes: int, pods: int) -> World:
    world = World(CATALOGUE, default=PolicyChoice(node="binpack", cards=("binpack",)))
    for number in range(nodes):
        put_node(world, node_name(number), LARGE if number % 2 else SMALL)
    for number in range(pods):
        put_pod(world, number, nodes)
    return world


def put_node(world: World, name: str, plan: str) -> None:
    inventory = simulate(name, parse_plan(plan), CATALOGUE)
    room = {"cpu": "128", "memory": "1Ti", "pods": "250", **report_capacity(inventory, CATALOGUE)}
    document = {
        "metadata": {"name": name, "annotations": report_cards(name, inventory, CATALOGUE)},
        "status": {"capacity": room, "allocatable": room},
    }
    world.node_changed(Change(ObjectKey("", name), None, msgspec.convert(document, CachedNode)))


def put_pod(world: World, number: int, nodes: int) -> None:
    """A pod that is bound already, on the next node in turn."""
    pod = a_pod(f"pod-{number}", SHAPES[number % len(SHAPES)])
    fleet = world.ledger.fleet
    allocation = world.decider.allocate(world.request_of(pod), fleet.row_of[node_name(number % nodes)])
    if allocation is None:
        return
    indexes = {uuid: index for index, uuid in enumerate(fleet.uuids[fleet.row_of[allocation.node]])}
    pod["metadata"]["annotations"] = bind_marks(allocation, indexes, world.allocation_keys, 1)[0]
    pod["spec"]["nodeName"] = allocation.node
    world.pod_changed(Change(ObjectKey("default", f"pod-{number}"), None, msgspec.convert(pod, Pod)))


def resident_of(pid: int) -> float:
    with open(f"/proc/{pid}/statm") as file:
        return int(file.read().split()[1]) * 4096 / 1e6


if __name__ == "__main__":
    run_server(*map(int, sys.argv[1:])) if len(sys.argv) > 1 else main()
