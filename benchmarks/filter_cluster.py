"""/filter of the real process, its caches filled by a real API server: how long it takes, and what the process weighs.

`tessera run extender` is asked over plain HTTP on the loopback with keep-alive, by names only, and half of the nodes
are refused. Each pod is also scored, and so offered cards, so that the ledger changes between any two questions. Then
the same with each pod really bound before the next one asks: the cores have been to the API server and back. Floor, in
the same run: the same HTTP server answering with the same bytes, canned.
"""

import argparse
import asyncio
import json
import os
import subprocess
import sys
import time
from pathlib import Path

import structlog

from benchmarks.extender_filter import report, resident_of
from benchmarks.half_refused import a_world, asking_pod, fill, node_documents, node_name
from benchmarks.scheduling import FROM_THIS_TREE, PORT, Scheduling, quiet_cluster
from tessera.kube.access import Access, find_access
from tessera.kube.client import Client
from tessera.kube.kinds import NODES, PODS, Selection
from tessera.kube.objects import Document
from testbed.creating import create_all

SIZES = ("1000x10000", "5000x10000")
WANTED_MS = {1_000: 1.0, 5_000: 4.0}
WANTED_MB = 250
FLOOR_PORT = 8081
SETTLED_S = 3.0


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--size", action="append", metavar="NODESxPODS", help=f"by default {' and '.join(SIZES)}")
    parser.add_argument("--asked", type=int, default=400, help="pods that ask")
    asked = parser.parse_args()
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(40))
    print("the extender as a process beside a real API server p50 ms   p99 ms   max ms")
    for size in asked.size or SIZES:
        nodes, pods = map(int, size.split("x"))
        measure(nodes, pods, asked.asked)


def measure(nodes: int, pods: int, asked: int) -> None:
    with quiet_cluster() as cluster:
        waiting = asyncio.run(make_cluster(find_access(cluster.kubeconfig), nodes, pods, asked))
        scheduling = Scheduling(cluster)
        extender = scheduling.start_extender("--node-policy=binpack", "--card-policy=binpack")
        time.sleep(SETTLED_S)
        before = resident_of(extender.pid)
        answer = cluster.machine.directory / "answer.json"
        offered = ask(scheduling, nodes, waiting, "--verbs=2", "--keep", str(answer))
        bound = ask(scheduling, nodes, waiting)
        canned = ask(scheduling, nodes, waiting, "--verbs=1", port=start_floor(scheduling, answer))
        what = f"/filter, {nodes} x 8, {pods} pods"
        report(f"{what} (p50 <= {WANTED_MS.get(nodes, '-')} ms)", offered["filter"])
        report("/filter, the last pod really bound", bound["filter"])
        report("/prioritize", offered["prioritize"])
        report("/bind, with its write to the API server", bound["bind"])
        report("floor: /filter, the same bytes, canned", canned["filter"])
        print(f"  resident: {before:.0f} MB before, {resident_of(extender.pid):.0f} MB after (<= {WANTED_MB} MB)")


def start_floor(scheduling: Scheduling, answer: Path) -> int:
    """The port of a server that always gives this answer."""
    cluster = scheduling.cluster
    address = cluster.machine.addresses.machine
    command = [sys.executable, "-m", "benchmarks.canned_server", address, str(FLOOR_PORT), str(answer)]
    floor = cluster.machine.start("floor", command, environment=FROM_THIS_TREE)
    floor.until(lambda: cluster.control_plane.answers(f"http://{address}:{FLOOR_PORT}/healthz"), "ready")
    return FLOOR_PORT


async def make_cluster(access: Access, nodes: int, pods: int, asked: int) -> list[Document]:
    """Nodes, pods that run on them, and pods that wait: those that wait, as the API server has them."""
    bound = fill(a_world(), nodes, pods)
    async with Client(access) as client:
        await create_all(client, NODES, node_documents(nodes))
        await create_all(client, PODS, bound, namespace="default")
        await create_all(client, PODS, map(asking_pod, range(asked)), namespace="default")
        page = await client.list(PODS, Selection(fields="spec.nodeName="))
    return list(page.items)


def ask(
    scheduling: Scheduling, nodes: int, pods: list[Document], *flags: str, port: int = PORT
) -> dict[str, list[float]]:
    """Seconds of each verb, measured by a process of its own inside the machine."""
    machine = scheduling.cluster.machine
    lines = [json.dumps([node_name(number) for number in range(nodes)]), *map(json.dumps, pods)]
    command = [sys.executable, "-m", "benchmarks.filter_load", machine.addresses.machine, str(port), *flags]
    done = subprocess.run(
        machine.enter(*command),
        input="\n".join(lines),
        text=True,
        stdout=subprocess.PIPE,
        check=True,
        timeout=300,
        env=os.environ | FROM_THIS_TREE,
    )
    return json.loads(done.stdout)


if __name__ == "__main__":
    main()
