"""How long kube-scheduler waits for /filter, over HTTP on the loopback, and what the process weighs.

Half of the nodes have cards that are too small, so that half of the answer is sentences. Each pod is scored and then
takes the cards that it was offered, so that between any two questions the ledger has changed; only the API server is
left out (`filter_cluster` has one). Floor, in the same run: /healthz of the same server.
"""

import http.client
import json
import subprocess
import sys
import time
from collections.abc import Sequence
from statistics import quantiles

import structlog
import uvloop
from prometheus_client import CollectorRegistry

from benchmarks.half_refused import a_world, asking_pod, fill, node_name
from benchmarks.memory import resident_bytes
from tessera.apps.serving import make_app, serve
from tessera.model.extender import ExtenderArgs, read_args
from tessera.scheduler.extender import Extender
from tessera.scheduler.phases import Phases

SIZES = ((1_000, 10_000), (5_000, 10_000))
ASKED = 400
PORT = 18_090


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
            questions = [
                json.dumps({"Pod": asking_pod(number), "Nodes": None, "NodeNames": names}).encode()
                for number in range(ASKED)
            ]
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
        check_half_refused(answer)
    return seconds


def check_half_refused(answer: bytes) -> None:
    result = json.loads(answer)
    assert not result["Error"], result["Error"]
    assert 0.8 < len(result["NodeNames"]) / len(result["FailedNodes"]) <= 1


def report(what: str, seconds: Sequence[float]) -> None:
    cuts = quantiles(seconds, n=100)
    print(f"  {what:44} {cuts[49] * 1e3:8.3f} {cuts[98] * 1e3:8.3f} {max(seconds) * 1e3:8.3f}", flush=True)


def run_server(nodes: int, pods: int) -> None:
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(40))
    world = a_world()
    fill(world, nodes, pods)
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


def resident_of(pid: int) -> float:
    with open(f"/proc/{pid}/statm") as file:
        return int(file.read().split()[1]) * 4096 / 1e6


if __name__ == "__main__":
    run_server(*map(int, sys.argv[1:])) if len(sys.argv) > 1 else main()
