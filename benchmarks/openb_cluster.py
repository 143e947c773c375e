"""The openb trace through the real kube-scheduler: are the cards as full as `tessera simulate` says?

1,213 nodes kept by kwok, with the cards, CPU and memory of the trace; pods of the list `default` one at a time, in the
order of the simulation's first seed. A pod that kube-scheduler finds no node for is deleted. When as much has arrived
as there are cards, the allocated share is compared with the simulation's. Both use `defrag` for nodes and cards.

The folder of the trace is found as `density` finds it; without it there is nothing to measure.
"""

import argparse
import asyncio
import sys
import time
from random import Random

import msgspec
import structlog

from benchmarks.density import NODES as NODE_LIST
from benchmarks.density import TRACES
from benchmarks.scheduling import Scheduling, quiet_cluster
from tessera.cli.simulate import FIRST_SEED
from tessera.kube.access import find_access
from tessera.kube.caching import Change
from tessera.kube.client import Client, Deletion
from tessera.kube.informer import Informer
from tessera.kube.kinds import PODS, Selection
from tessera.kube.objects import Document
from tessera.kube.pods import CACHED_PODS, Pod
from tessera.model.devices import Node
from tessera.model.pods import read_pod_request
from tessera.simulation.arrivals import arrivals_for
from tessera.simulation.replay import run
from tessera.simulation.scenario import Arrival, Scenario
from tessera.simulation.trace import read_trace
from tessera.vendors.loading import load_catalogue
from tessera.vendors.managers import Inventory
from tessera.vendors.rules import refine
from testbed.node_documents import NodeShape
from testbed.simulated_nodes import SimulatedNode

POLICY = "defrag"
DEMAND_PERCENT = 130.0
WANTED_POINTS = 0.5
DECIDED_IN_S = 30
SHOWN_EVERY_S = 15.0
CATALOGUE = load_catalogue()
GONE_AT_ONCE = Deletion(grace_s=0)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--percent", type=int, default=100, help="stop when this much of all cards has arrived")
    parser.add_argument("--every", type=int, default=1, metavar="N", help="every Nth node only, for a short run")
    asked = parser.parse_args()
    if not (TRACES / NODE_LIST).is_file():
        print(f"openb_cluster: no {NODE_LIST} in {TRACES}, set TESSERA_TRACES to the folder of the openb lists")
        return
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(40))
    scenario = read_trace(TRACES / NODE_LIST, TRACES / "openb_pod_list_default.csv")
    scenario = msgspec.structs.replace(scenario, nodes=scenario.nodes[:: asked.every])
    simulated = run(scenario, policy=POLICY, seed=FIRST_SEED).curve[asked.percent]
    real = replay(scenario, asked.percent)
    nodes = len(scenario.nodes)
    print(f"openb default, {nodes} nodes, seed {FIRST_SEED}, {POLICY}, {asked.percent} % arrived  allocated")
    print(f"  tessera simulate                                {simulated:8.2f} %")
    print(f"  kube-scheduler with the extender                {real:8.2f} %")
    print(f"  apart by {abs(real - simulated):.2f} points (<= {WANTED_POINTS})")


def replay(scenario: Scenario, percent: int) -> float:
    with quiet_cluster() as cluster:
        cluster.simulated.put({node.name: a_simulated_node(node) for node in scenario.nodes})
        scheduling = Scheduling(cluster)
        scheduling.start_extender(f"--node-policy={POLICY}", f"--card-policy={POLICY}")
        scheduling.start_scheduler(scheduling.with_extender())
        return asyncio.run(arrive(scheduling, scenario, percent))


def a_simulated_node(node: Node) -> SimulatedNode:
    host = node.host
    shape = NodeShape(cpu=f"{host.cpu_milli}m", memory=str(host.memory_bytes), pods=str(host.pods))
    return SimulatedNode(shape, Inventory(node.devices, node.links))


async def arrive(scheduling: Scheduling, scenario: Scenario, percent: int) -> float:
    """The allocated percentage once so much has arrived."""
    wanted_milli = scenario.capacity_milli * DEMAND_PERCENT / 100
    queue = arrivals_for(scenario.pods, wanted_milli=wanted_milli, random=Random(FIRST_SEED))
    tally = Tally(scenario.capacity_milli)
    async with Client(find_access(scheduling.cluster.kubeconfig)) as client, asyncio.TaskGroup() as tasks:
        verdicts = Verdicts(client)
        following = tasks.create_task(verdicts.run())
        for number, pod in enumerate(queue):
            tally.count(pod.milli, accepted=await verdicts.of(a_pod(f"pod-{number:05}", pod)))
            if tally.arrived_percent >= percent:
                break
        following.cancel()
    return tally.allocated_percent


class Tally:
    def __init__(self, capacity_milli: int) -> None:
        self._capacity_milli = capacity_milli
        self._pods = self._rejected = self._arrived_milli = self._allocated_milli = 0
        self._shown_s = time.monotonic()

    @property
    def arrived_percent(self) -> float:
        return 100 * self._arrived_milli / self._capacity_milli

    @property
    def allocated_percent(self) -> float:
        return 100 * self._allocated_milli / self._capacity_milli

    def count(self, milli: int, *, accepted: bool) -> None:
        self._pods += 1
        self._rejected += not accepted
        self._arrived_milli += milli
        self._allocated_milli += milli if accepted else 0
        if time.monotonic() - self._shown_s > SHOWN_EVERY_S:
            self._shown_s = time.monotonic()
            shares = f"{self.arrived_percent:.1f} % arrived, {self.allocated_percent:.2f} % allocated"
            print(f"  {self._pods} pods, {shares}, {self._rejected} rejected", file=sys.stderr, flush=True)


def a_pod(name: str, pod: Arrival) -> Document:
    """The pod as a document, which must be read as the same request that the simulation places."""
    host, devices = pod.request.host, [device for container in pod.request.containers for device in container.devices]
    limits = {"cpu": f"{host.cpu_milli}m", "memory": str(host.memory_bytes)}
    for device in devices:
        cores = {"nvidia.com/gpucores": str(device.cores_percent)}
        limits |= {"nvidia.com/gpu": str(device.count), "nvidia.com/gpumem": str(device.memory_mib), **cores}
    document = {
        "metadata": {"name": name, "namespace": "default"},
        "spec": {
            "schedulerName": "hami-scheduler",
            "terminationGracePeriodSeconds": 0,
            "containers": [{"name": "main", "image": "x", "resources": {"limits": limits}}],
        },
    }
    read = read_pod_request(document, CATALOGUE, refine)
    asked = [device for container in read.containers for device in container.devices]
    assert (asked, read.host.cpu_milli, read.host.memory_bytes) == (devices, host.cpu_milli, host.memory_bytes), read
    return document


class Verdicts:
    """What kube-scheduler says about one pod at a time, seen by a watch."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._pods = Informer(client, CACHED_PODS, Selection(namespace="default"))
        self._pods.subscribe(self._note)
        self._waited_for = ""
        self._verdict: asyncio.Future[bool] | None = None

    async def run(self) -> None:
        await self._pods.run()

    async def of(self, pod: Document) -> bool:
        """Create the pod and wait: True once it is on a node; False, and it is deleted, if there is none for it."""
        await self._pods.synced()
        self._waited_for = pod["metadata"]["name"]
        self._verdict = asyncio.get_running_loop().create_future()
        await self._client.create(PODS, pod, namespace="default")
        accepted = await asyncio.wait_for(self._verdict, DECIDED_IN_S)
        if not accepted:
            await self._client.delete(PODS, self._waited_for, namespace="default", how=GONE_AT_ONCE)
        return accepted

    def _note(self, change: Change[Pod]) -> None:
        pod, verdict = change.after, self._verdict
        if pod is None or verdict is None or verdict.done() or change.key.name != self._waited_for:
            return
        if pod.spec.node_name:
            verdict.set_result(True)
        elif any(
            said.type == "PodScheduled" and said.reason == "Unschedulable" for said in pod.status.conditions or ()
        ):
            verdict.set_result(False)


if __name__ == "__main__":
    main()
