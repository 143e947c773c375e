"""How long a claim takes: from its creation until its status is Bound, and from its pod's end until its lease is gone.

A cluster of eight nodes with eight cards, kept by kwok, with kube-scheduler, our extender and our operator. Floor, in
the same run: the same pods without claims, created to bound, through the same kube-scheduler without an extender.

Then five hundred claims of one card each, from four namespaces, race for the 64 cards. Each card must be owned once, by
what the pods say and by what the leases say.
"""

import argparse
import asyncio
import sys
import time
from collections import Counter
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from typing import Any

import structlog

from benchmarks.bind_rate import PEER, measure_waits, offer_plain_resource, print_waits
from benchmarks.pod_times import AT_ONCE
from benchmarks.scheduling import AS_DEPLOYED, Scheduling, quiet_cluster
from tessera.kube.access import find_access
from tessera.kube.caching import Change
from tessera.kube.client import Client
from tessera.kube.informer import Informer
from tessera.kube.kinds import GPU_CLAIMS, LEASES, NAMESPACES, PODS, Kind, Selection
from tessera.kube.objects import Document, ObjectKey
from tessera.operators.installing import install_definitions
from testbed.creating import create_all

NODES, CARDS = 8, 64
TEAMS = ("red", "green", "blue", "grey")
WANTED_GONE_S = 2.0
AT_ONCE_CREATED = 16


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--claims", type=int, default=100, help="for the times; no more than there is room for")
    parser.add_argument("--pace", type=int, default=10, help="claims a second for the times")
    parser.add_argument("--racing", type=int, default=500)
    asked = parser.parse_args()
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(40))
    with quiet_cluster(simulated_nodes=NODES) as cluster:
        scheduling = Scheduling(cluster)
        asyncio.run(install_kinds(cluster.kubeconfig))
        scheduling.start_extender()
        operator = [
            sys.executable,
            "-m",
            "tessera.apps.cli",
            "run",
            "operator",
            "--kubeconfig",
            str(cluster.kubeconfig),
        ]
        cluster.machine.start("operator", operator, environment=AS_DEPLOYED)
        asyncio.run(measure(scheduling, asked))


async def install_kinds(kubeconfig: Any) -> None:
    async with Client(find_access(kubeconfig)) as client:
        await install_definitions(client, "benchmark")
        for team in TEAMS:
            await client.create(NAMESPACES, {"metadata": {"name": team}})


async def measure(scheduling: Scheduling, asked: argparse.Namespace) -> None:
    async with Client(find_access(scheduling.cluster.kubeconfig)) as client:
        await offer_plain_resource(client)
        print(f"{asked.claims} claims, {asked.pace} a second                               p50 ms   p99 ms", flush=True)
        floor = await measure_waits(client, scheduling, PEER, asked.pace, max(2, asked.claims // asked.pace))
        print_waits("a pod without a claim, created to bound", floor)
        await asyncio.to_thread(scheduling.start_scheduler, scheduling.with_extender())
        async with followed(client) as seen:
            bound, gone = await measure_claims(client, seen, asked.claims, asked.pace)
            print_waits("claim and pod created to status Bound", bound)
            print_waits(f"pod ended to lease gone (<= {WANTED_GONE_S:.0f} s)", gone)
            await race(client, seen, asked.racing)


class Seen:
    """What watches showed, and when."""

    def __init__(self) -> None:
        self.bound_s: dict[ObjectKey, float] = {}
        self.ended_s: dict[ObjectKey, float] = {}
        self.freed_s: dict[str, float] = {}
        self.owners: dict[str, str] = {}
        self.pods: dict[ObjectKey, Document] = {}

    def claim(self, change: Change[Document]) -> None:
        phase = (change.after or {}).get("status", {}).get("phase")
        if phase == "Bound":
            self.bound_s.setdefault(change.key, time.perf_counter())

    def pod(self, change: Change[Document]) -> None:
        if change.after is None:
            self.ended_s[change.key] = time.perf_counter()
            self.pods.pop(change.key, None)
        else:
            self.pods[change.key] = change.after

    def lease(self, change: Change[Document]) -> None:
        name = change.key.name
        if change.after is None:
            self.freed_s[name] = time.perf_counter()
            self.owners.pop(name, None)
        elif name.startswith("gpu-"):
            self.owners[name] = change.after["spec"]["holderIdentity"]


@asynccontextmanager
async def followed(client: Client) -> AsyncGenerator[Seen]:
    seen = Seen()
    kinds: Sequence[tuple[Kind[Document], Any]] = ((GPU_CLAIMS, seen.claim), (PODS, seen.pod), (LEASES, seen.lease))
    informers = [Informer(client, kind) for kind, _ in kinds]
    for informer, (_, handler) in zip(informers, kinds, strict=True):
        informer.subscribe(handler)
    tasks = [asyncio.create_task(informer.run()) for informer in informers]
    for informer in informers:
        await informer.synced()
    try:
        yield seen
    finally:
        for task in tasks:
            task.cancel()


async def measure_claims(client: Client, seen: Seen, count: int, pace: int) -> tuple[list[float], list[float]]:
    """In waves of what fits; each claim is timed from before its creation."""
    bound, gone = list[float](), list[float]()
    while len(bound) < count:
        wave, began, created_s = min(count - len(bound), CARDS), time.perf_counter(), dict[ObjectKey, float]()
        for number in range(wave):
            await asyncio.sleep(began + number / pace - time.perf_counter())
            key = ObjectKey("default", f"claim-{len(bound) + number:04}")
            created_s[key] = time.perf_counter()
            await client.create(GPU_CLAIMS, a_claim(key), namespace=key.namespace)
            await client.create(PODS, a_claimant(key), namespace=key.namespace)
        await until(lambda created_s=created_s: created_s.keys() <= seen.bound_s.keys())
        bound += [seen.bound_s[key] - at_s for key, at_s in created_s.items()]
        leases = {key: lease_of(seen.pods[key]) for key in created_s}
        await client.delete_collection(PODS, Selection(namespace="default"), how=AT_ONCE)
        await until(lambda leases=leases: not set(leases.values()) & seen.owners.keys())
        gone += [seen.freed_s[lease] - seen.ended_s[key] for key, lease in leases.items()]
    return bound, gone


async def race(client: Client, seen: Seen, count: int) -> None:
    keys = [ObjectKey(TEAMS[number % len(TEAMS)], f"racing-{number:04}") for number in range(count)]
    began = time.perf_counter()
    for team in TEAMS:
        theirs = [key for key in keys if key.namespace == team]
        await create_all(client, GPU_CLAIMS, map(a_claim, theirs), namespace=team)
    created_s = time.perf_counter() - began
    turns = asyncio.Semaphore(AT_ONCE_CREATED)

    async def create(key: ObjectKey) -> None:
        async with turns:
            await client.create(PODS, a_claimant(key), namespace=key.namespace)

    async with asyncio.TaskGroup() as tasks:
        for key in keys:
            tasks.create_task(create(key))
    await until(lambda: sum("nodeName" in pod["spec"] for pod in seen.pods.values()) >= CARDS)
    placed_s = time.perf_counter() - began - created_s
    await until(lambda: sum(key in seen.bound_s for key in keys) >= CARDS)
    await asyncio.sleep(3)  # whoever would be given too much would be by now
    owned = [pod for pod in seen.pods.values() if "nodeName" in pod["spec"]]
    cards = Counter(pod["metadata"]["annotations"]["gpu.scheduling/allocated"] for pod in owned)
    teams = Counter(pod["metadata"]["namespace"] for pod in owned)
    twice = [card for card, owners in cards.items() if owners > 1]
    otherwise = [pod for pod in owned if seen.owners.get(lease_of(pod)) != pod["metadata"]["uid"]]
    print(
        f"{count} claims of four namespaces for {CARDS} cards: {len(owned)} bound in {placed_s:.2f} s after the claims"
    )
    print(f"  cards owned twice {len(twice)}, leases that say otherwise {len(otherwise)}")
    print(f"  by namespace {dict(sorted(teams.items()))}")


async def until(condition: Any) -> None:
    async with asyncio.timeout(180):
        while not condition():
            await asyncio.sleep(0.01)


def lease_of(pod: Document) -> str:
    node, _, index = pod["metadata"]["annotations"]["gpu.scheduling/allocated"].rpartition(":")
    return f"gpu-{node}-{index}"


def a_claim(key: ObjectKey) -> Document:
    head = {"apiVersion": GPU_CLAIMS.api_version, "kind": GPU_CLAIMS.name, "metadata": {"name": key.name}}
    return {**head, "spec": {"devices": {"count": 1, "exclusivity": "Exclusive"}}}


def a_claimant(key: ObjectKey) -> Document:
    """As the webhook lets it in."""
    return {
        "metadata": {"name": key.name, "annotations": {"gpu.scheduling/claim": key.name}},
        "spec": {
            "schedulerName": "gpu-scheduler",
            "terminationGracePeriodSeconds": 0,
            "containers": [{"name": "main", "image": "x", "resources": {"limits": {"gpu.scheduling/claim": "1"}}}],
        },
    }


if __name__ == "__main__":
    main()
