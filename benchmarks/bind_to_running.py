"""How long a pod takes from bound to running on the real node: kubelet, containerd, and our agent with made-up cards.

One pod at a time, from the moment a watch shows it on the node until it shows it running. Peer, in the same run: the
same pod without cards, with which our agent has nothing to do.
"""

import argparse
import asyncio
import sys
from collections.abc import Sequence

import structlog

from benchmarks.bind_rate import print_waits
from benchmarks.pod_times import NAMESPACE, followed_pods
from benchmarks.scheduling import Scheduling
from tessera.kube.access import find_access
from tessera.kube.client import Client
from tessera.kube.kinds import PODS
from tessera.kube.objects import Document
from testbed.cluster import Cluster
from testbed.images.recipes.busybox import REFERENCE

CARDS = "8xA100-SXM4-80GB"
WAYS = {
    "peer: no cards": {"cpu": "10m"},
    "a share of one card": {"cpu": "10m", "nvidia.com/gpu": "1", "nvidia.com/gpumem": "4000"},
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pods", type=int, default=30, help="of each kind")
    asked = parser.parse_args()
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(40))
    with Cluster(node=True) as cluster:
        start_agent(cluster)
        scheduling = Scheduling(cluster)
        scheduling.start_extender()
        scheduling.start_scheduler(scheduling.with_extender())
        print(f"{asked.pods} pods, one at a time, bound to running         p50 ms   p99 ms")
        for title, limits in WAYS.items():
            print_waits(title, asyncio.run(measure(cluster, limits, asked.pods)))


def start_agent(cluster: Cluster) -> None:
    """Returns when kubelet offers the cards."""
    access = ["--kubeconfig", str(cluster.kubeconfig), "--node", cluster.node.name]
    command = [sys.executable, "-m", "tessera.apps.cli", "run", "agent", *access, "--simulate", CARDS]
    agent = cluster.machine.start("agent", command)
    path = "jsonpath={.status.allocatable.nvidia\\.com/gpu}"
    agent.until(lambda: cluster.kubectl("get", "node", cluster.node.name, "-o", path), "known to kubelet")


async def measure(cluster: Cluster, limits: dict[str, str], count: int) -> Sequence[float]:
    async with Client(find_access(cluster.kubeconfig)) as client, followed_pods(client) as times:
        for number in range(count):
            name = f"pod-{number:03}"
            await client.create(PODS, a_pod(name, limits), namespace=NAMESPACE)
            await times.until(lambda name=name: name in times.running_s)
        await times.clear()
    return [times.running_s[name] - times.bound_s[name] for name in times.running_s]


def a_pod(name: str, limits: dict[str, str]) -> Document:
    container = {
        "name": "main",
        "image": REFERENCE,
        "imagePullPolicy": "Never",
        "command": ["sleep", "3600"],
        "resources": {"limits": limits},
    }
    return {
        "metadata": {"name": name},
        "spec": {
            "schedulerName": "hami-scheduler",
            "terminationGracePeriodSeconds": 0,
            "containers": [container],
        },
    }


if __name__ == "__main__":
    main()
