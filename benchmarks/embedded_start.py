"""How long `tessera up` takes until a pod runs on it, and what it weighs at rest.

Four nodes with eight cards each. First with an empty state directory, where a certificate is made as well, then again
with what the first left. The pod asks for half a card; the clock runs from before `up` until a watch shows it running.
Floor, in the same run: Python itself, loading what the engine consists of.
"""

import asyncio
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from benchmarks.memory import proportional_bytes
from tessera.kube.access import find_access
from tessera.kube.client import Client
from tessera.kube.kinds import PODS, Selection
from tessera.kube.objects import Document
from tessera.kube.watching import ObjectEvent

TESSERA = (sys.executable, "-m", "tessera.apps.cli")
CARDS = "8xA100-SXM4-80GB"
ROUNDS = 5
REST_S = 5.0
WANTED_S, WANTED_MB = 3.0, 250
LOAD = "import tessera.apps.embedded_engine"


def main() -> None:
    print("tessera up, 4 nodes x 8 cards                    median s    worst s")
    report("floor: Python loads the engine", [seconds_of(sys.executable, "-c", LOAD) for _ in range(ROUNDS)])
    rounds = [measure() for _ in range(ROUNDS)]
    first, later, megabytes = ([*figures] for figures in zip(*rounds, strict=True))
    report(f"first start to a pod running (<= {WANTED_S})", first)
    report("later start to a pod running", later)
    print(f"  the engine at rest, PSS                     {max(megabytes):8.0f} MB (<= {WANTED_MB})")


def measure() -> tuple[float, float, float]:
    """Seconds of a first and of a later start, and the megabytes of the engine when it has nothing to do."""
    with tempfile.TemporaryDirectory() as directory:
        state = Path(directory) / "state"
        first = start_until_a_pod_runs(state, "first")
        stop(state)
        later = start_until_a_pod_runs(state, "later")
        time.sleep(REST_S)
        megabytes = proportional_bytes(engine_pid(state)) / 1e6
        stop(state)
    return first, later, megabytes


def start_until_a_pod_runs(state: Path, pod: str) -> float:
    began = time.perf_counter()
    subprocess.run(
        [*TESSERA, "up", "--detach", f"--state-dir={state}", "--nodes=4", f"--cards={CARDS}"],
        check=True,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    asyncio.run(run_pod(state / "kubeconfig", pod))
    return time.perf_counter() - began


def stop(state: Path) -> None:
    subprocess.run([*TESSERA, "down", f"--state-dir={state}"], check=True, stderr=subprocess.DEVNULL)


async def run_pod(kubeconfig: Path, name: str) -> None:
    limits = {"nvidia.com/gpu": "1", "nvidia.com/gpumem": "40000"}
    container = {"name": "main", "image": "any", "command": ["sleep", "60"], "resources": {"limits": limits}}
    pod: Document = {"metadata": {"name": name}, "spec": {"containers": [container], "restartPolicy": "Never"}}
    async with Client(find_access(kubeconfig)) as client:
        created = await client.create(PODS, pod, namespace="default")
        version = created["metadata"]["resourceVersion"]
        async with client.watch(PODS, Selection(namespace="default"), resource_version=version) as events:
            async for event in events:
                if isinstance(event, ObjectEvent) and is_running(event.object, name):
                    return


def is_running(pod: Document, name: str) -> bool:
    return pod["metadata"]["name"] == name and pod["status"].get("phase") == "Running"


def engine_pid(state: Path) -> int:
    found = subprocess.run(["pgrep", "-f", f"state-dir {state}"], capture_output=True, text=True, check=True).stdout
    return int(found.split()[0])


def seconds_of(*command: str) -> float:
    began = time.perf_counter()
    subprocess.run(command, check=True)
    return time.perf_counter() - began


def report(what: str, seconds: list[float]) -> None:
    print(f"  {what:44} {statistics.median(seconds):8.2f} {max(seconds):10.2f}", flush=True)


if __name__ == "__main__":
    main()
