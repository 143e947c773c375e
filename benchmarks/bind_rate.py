"""How many pods a second kube-scheduler binds through our extender, and how long one pod waits.

A thousand nodes of eight cards, kept by kwok. Peer, in the same run and on the same cluster: the same kube-scheduler
without extender, binding pods that ask for a plain extended resource. In both it may call the API server a thousand
times a second, looks at all nodes, and does not batch equal pods.

For the rate all pods are created while kube-scheduler is stopped; the clock runs from the first pod that a watch shows
on a node to the last. For the wait pods are created at a steady pace, and each is timed from before its creation until
the watch shows it on a node.
"""

import argparse
import asyncio
import time
from collections.abc import Sequence
from statistics import quantiles
from typing import Any, NamedTuple

import structlog

from benchmarks.pod_times import NAMESPACE, followed_pods
from benchmarks.scheduling import Scheduling, quiet_cluster
from tessera.kube.access import find_access
from tessera.kube.client import Client
from tessera.kube.kinds import NODES, PODS
from tessera.kube.objects import Document
from testbed.creating import create_all

WANTED_RATE, WANTED_PART = 60, 0.5
PLAIN = "example.com/card"


class Way(NamedTuple):
    """How pods get to their nodes: what each asks for, and which scheduler it names."""

    title: str
    scheduler: str
    limits: dict[str, str]

    def pod(self, name: str) -> Document:
        return {
            "metadata": {"name": name},
            "spec": {
                "schedulerName": self.scheduler,
                "terminationGracePeriodSeconds": 0,
                "containers": [{"name": "main", "image": "x", "resources": {"limits": self.limits}}],
            },
        }


OURS = Way("extender", "hami-scheduler", {"nvidia.com/gpu": "1", "nvidia.com/gpumem": "20000"})
PEER = Way("plain extended resource", "default-scheduler", {PLAIN: "1"})


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--nodes", type=int, default=1_000)
    parser.add_argument("--pods", type=int, default=1_000, help="for the rate")
    parser.add_argument("--rounds", type=int, default=2, help="of the rate, the better counts")
    parser.add_argument("--pace", type=int, default=20, help="pods a second for the wait")
    parser.add_argument("--for-s", type=int, default=20, help="how long for the wait")
    asked = parser.parse_args()
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(40))
    with quiet_cluster(simulated_nodes=asked.nodes) as cluster:
        scheduling = Scheduling(cluster)
        scheduling.start_extender()
        asyncio.run(measure(scheduling, asked))


async def measure(scheduling: Scheduling, asked: argparse.Namespace) -> None:
    async with Client(find_access(scheduling.cluster.kubeconfig)) as client:
        await offer_plain_resource(client)
        print(
            f"{asked.pods} pods waiting, {asked.nodes} nodes          pods a second   CPU ms for each pod", flush=True
        )
        rounds = [
            {way.title: await measure_rate(client, scheduling, way, asked.pods) for way in (PEER, OURS)}
            for _ in range(asked.rounds)
        ]
        peer, ours = (print_rates(way, [found[way.title] for found in rounds]) for way in (PEER, OURS))
        part = f"{ours / peer:.0%} (>= {WANTED_PART:.0%})"
        print(f"  part of the peer {part}, pods a second {ours:.1f} (>= {WANTED_RATE})")
        print(f"{asked.pace} pods a second, created to bound               p50 ms   p99 ms")
        for way in (PEER, OURS):
            print_waits(way.title, await measure_waits(client, scheduling, way, asked.pace, asked.for_s))


async def offer_plain_resource(client: Client) -> None:
    """As many of the peer's resource on each node as it has shares of cards."""
    change = {"status": {"capacity": {PLAIN: "80"}, "allocatable": {PLAIN: "80"}}}
    for node in (await client.list(NODES)).items:
        await client.patch(NODES, node["metadata"]["name"], change, subresource="status")


class Rate(NamedTuple):
    """`cpu_ms` is what each program worked for each pod, what it does anyway included."""

    pods_a_second: float
    cpu_ms: dict[str, float]


async def measure_rate(client: Client, scheduling: Scheduling, way: Way, count: int) -> Rate:
    if old := scheduling.cluster.machine.programs.get("kube-scheduler"):
        old.stop()
    async with followed_pods(client) as times:
        await create_all(client, PODS, (way.pod(f"pod-{number:05}") for number in range(count)), namespace=NAMESPACE)
        before = scheduling.cpu_s()
        await asyncio.to_thread(scheduling.start_scheduler, configuration_of(scheduling, way))
        await times.until(lambda: len(times.bound_s) == count)
        cpu_ms = {name: 1e3 * (now - before.get(name, 0.0)) / count for name, now in scheduling.cpu_s().items()}
        await times.clear()
    return Rate((count - 1) / (max(times.bound_s.values()) - min(times.bound_s.values())), cpu_ms)


def print_rates(way: Way, rates: Sequence[Rate]) -> float:
    """The best rate, which is printed with what it cost."""
    best = max(rates, key=lambda rate: rate.pods_a_second)
    costs = ", ".join(f"{name} {spent:.1f}" for name, spent in best.cpu_ms.items() if spent >= 0.1)
    print(f"  {way.title:40} {best.pods_a_second:8.1f}   {costs}", flush=True)
    return best.pods_a_second


async def measure_waits(client: Client, scheduling: Scheduling, way: Way, pace: int, for_s: int) -> Sequence[float]:
    await asyncio.to_thread(scheduling.start_scheduler, configuration_of(scheduling, way))
    created_s: dict[str, float] = {}

    async def create(number: int) -> None:
        name = f"pod-{number:05}"
        created_s[name] = time.perf_counter()
        await client.create(PODS, way.pod(name), namespace=NAMESPACE)

    async with followed_pods(client) as times:
        began = time.perf_counter()
        async with asyncio.TaskGroup() as tasks:
            for number in range(pace * for_s):
                await asyncio.sleep(began + number / pace - time.perf_counter())
                tasks.create_task(create(number))
        await times.until(lambda: len(times.bound_s) == pace * for_s)
        await times.clear()
    return [times.bound_s[name] - created_s[name] for name in created_s]


def configuration_of(scheduling: Scheduling, way: Way) -> dict[str, Any]:
    return scheduling.with_extender() if way is OURS else scheduling.without_extender()


def print_waits(title: str, waits_s: Sequence[float]) -> None:
    cuts = quantiles(waits_s, n=100)
    print(f"  {title:44} {cuts[49] * 1e3:8.1f} {cuts[98] * 1e3:8.1f}", flush=True)


if __name__ == "__main__":
    main()
