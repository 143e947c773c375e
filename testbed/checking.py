"""Whether what the cluster promises can be kept, judged by the API alone.

Reads nodes and pods and nothing else, and adds up by itself, in the plainest way: a scheduler that is wrong about its
own ledger must not be asked. What annotations mean it learns from the product's codecs. `python -m testbed.checking
FILE` judges the cluster of a kubeconfig.
"""

import asyncio
import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from tessera.errors import InvalidInput
from tessera.kube.access import find_access
from tessera.kube.client import Client
from tessera.kube.kinds import NODES, PODS
from tessera.model.allocations import Allocation, CardShare
from tessera.model.nodes import read_node
from tessera.model.pod_allocations import read_pod_allocation
from tessera.model.pods import read_pod_ref, read_pod_request
from tessera.model.requests import PodRequest, Role
from tessera.vendors.loading import load_catalogue
from tessera.vendors.rules import refine

CATALOGUE = load_catalogue()
Document = dict[str, Any]


class Card(NamedTuple):
    node: str
    uuid: str


class Amount(NamedTuple):
    slots: int
    memory_mib: int
    cores_percent: int


class Verdict(NamedTuple):
    """`problems` are sentences; none means that every promise can be kept."""

    problems: tuple[str, ...]
    total: Mapping[Card, Amount]
    taken: Mapping[Card, Amount]

    @property
    def free(self) -> dict[Card, Amount]:
        nothing = Amount(0, 0, 0)
        return {card: _minus(amount, self.taken.get(card, nothing)) for card, amount in self.total.items()}

    @property
    def taken_mib(self) -> dict[Card, int]:
        return {card: amount.memory_mib for card, amount in self.taken.items()}


def check(kubeconfig: Path) -> Verdict:
    return asyncio.run(_check(kubeconfig))


async def _check(kubeconfig: Path) -> Verdict:
    async with Client(find_access(kubeconfig)) as client:
        nodes, pods = await client.list(NODES), await client.list(PODS)
    return judge(nodes.items, pods.items)


def judge(nodes: Iterable[Document], pods: Iterable[Document]) -> Verdict:
    total = dict(_cards(nodes))
    problems, figures = list[str](), {card: Counter[str]() for card in total}
    for pod in pods:
        problems += _add_up(pod, figures)
    taken = {card: Amount(*(used[name] for name in Amount._fields)) for card, used in figures.items() if used}
    for card, amount in taken.items():
        problems += [
            f"card {card.uuid} on {card.node} has {has} {name}, {wanted} are promised"
            for name, wanted, has in zip(Amount._fields, amount, total[card], strict=True)
            if wanted > has
        ]
    return Verdict(tuple(problems), total, taken)


def _cards(nodes: Iterable[Document]) -> Iterator[tuple[Card, Amount]]:
    for document in nodes:
        node = read_node(document, CATALOGUE).node
        for device in node.devices:
            yield Card(node.name, device.uuid), Amount(device.slots, device.memory_mib, device.cores_percent)


def _add_up(pod: Document, figures: Mapping[Card, Counter[str]]) -> list[str]:
    """Charge the pod to its cards, and say what is wrong with it."""
    node, status = pod["spec"].get("nodeName"), pod.get("status", {})
    if not node or status.get("phase") in ("Succeeded", "Failed"):
        return []
    try:
        request = read_pod_request(pod, CATALOGUE, refine)
        allocation = read_pod_allocation(pod, request, CATALOGUE.allocation_keys(), node)
    except InvalidInput as error:
        return [str(error)]
    ref = read_pod_ref(pod)
    if allocation is None:
        return [f"pod {ref} on {node} asks for cards and has none"] if request.wants_devices else []
    named = (pod["metadata"].get("annotations") or {}).get("hami.io/vgpu-node", node)
    problems = [f"pod {ref} is on {node}, its cards are on {named}"] if named != node else []
    for uuid, amount in _most_at_once(allocation, request, initialised=_is_initialised(status)).items():
        if Card(node, uuid) in figures:
            figures[Card(node, uuid)].update(amount._asdict())
        else:
            problems.append(f"pod {ref} holds the card {uuid}, which is not on {node}")
    return problems


def _most_at_once(allocation: Allocation, request: PodRequest, *, initialised: bool) -> dict[str, Amount]:
    """The most that the pod needs of each card at any moment of its life that is still to come."""
    moments, lasting = list[list[CardShare]](), list(allocation.claimed)
    for container, shares in zip(request.containers, allocation.containers, strict=True):
        if container.role is Role.INIT:
            moments.append([*lasting, *shares])
        else:
            lasting.extend(shares)
    moments = [lasting] if initialised else [*moments, lasting]
    uuids = {share.uuid for moment in moments for share in moment}
    return {uuid: Amount(*map(max, zip(*(_sum(moment, uuid) for moment in moments), strict=True))) for uuid in uuids}


def _sum(moment: list[CardShare], uuid: str) -> Amount:
    shares = [share for share in moment if share.uuid == uuid]
    return Amount(len(shares), sum(share.memory_mib for share in shares), sum(share.cores_percent for share in shares))


def _is_initialised(status: Document) -> bool:
    return any(said["type"] == "Initialized" and said["status"] == "True" for said in status.get("conditions") or ())


def _minus(one: Amount, other: Amount) -> Amount:
    return Amount(*(have - used for have, used in zip(one, other, strict=True)))


if __name__ == "__main__":
    verdict = check(Path(sys.argv[1]))
    for card, amount in sorted(verdict.free.items()):
        print(f"{card.node} {card.uuid} free: {amount.slots} slots, {amount.memory_mib} MiB, {amount.cores_percent} %")
    print(*verdict.problems, sep="\n")
    sys.exit(bool(verdict.problems))
