"""Clusters for the benchmarks: nodes of eight cards, and a mix of forty shapes, most of them fractions."""

from collections.abc import Sequence
from random import Random

from tessera.engine.deciding import Decider
from tessera.engine.ledger import Ledger
from tessera.engine.policies import PolicyBook
from tessera.model.devices import Device, Host, Link, Node
from tessera.model.requests import (
    ANY_CARD,
    CardSelector,
    ContainerRequest,
    DeviceRequest,
    HostRequest,
    PodRef,
    PodRequest,
    PolicyChoice,
    Role,
)

GIB = 2**30
CARD_MIB = 81_920
FOREVER = float("inf")


def a_model(number: int) -> str:
    return f"NVIDIA A{100 + number}-SXM4-80GB"


def a_node(number: int, cards: int = 8, model: str = "NVIDIA A100-SXM4-80GB") -> Node:
    name = f"node-{number:05d}"
    uuids = [f"GPU-{number:08x}-0000-4000-8000-{index:012x}" for index in range(cards)]
    devices = tuple(
        Device(
            uuid=uuid,
            index=index,
            vendor="NVIDIA",
            model=model,
            slots=10,
            memory_mib=CARD_MIB,
            numa=index // 4,
        )
        for index, uuid in enumerate(uuids)
    )
    links = tuple(
        Link(uuids[one], uuids[other], 1200 if one // 4 == other // 4 else 10)
        for one in range(cards)
        for other in range(one + 1, cards)
    )
    host = Host(cpu_milli=128_000, memory_bytes=1024 * GIB, pods=250)
    return Node(name=name, host=host, devices=devices, links=links)


def shapes() -> list[PodRequest]:
    """Forty shapes; on average a pod takes about seven tenths of a card."""
    found: list[PodRequest] = []
    for cpu in (1_000, 2_000, 3_000, 4_000):
        for share in (8, 12, 20, 25, 33, 40, 50, 75):
            found.append(_pod(1, CARD_MIB * share // 100, 0, cpu))
        found.append(_pod(1, CARD_MIB, 100, cpu * 2))
        found.append(_pod(2 if cpu < 3_000 else 4, CARD_MIB, 100, cpu * 4))
    return found


def _pod(cards: int, memory_mib: int, cores: int, cpu_milli: int, selector: CardSelector = ANY_CARD) -> PodRequest:
    device = DeviceRequest(vendor="NVIDIA", count=cards, memory_mib=memory_mib, cores_percent=cores, selector=selector)
    host = HostRequest(cpu_milli=cpu_milli, memory_bytes=cpu_milli * GIB // 500)
    return PodRequest(containers=(ContainerRequest(Role.APP, (device,)),), host=host)


def many_shapes() -> list[PodRequest]:
    """Two hundred shapes, most of them for one of twelve models only."""
    found = [_pod(1, CARD_MIB * share // 100, 0, 4_000) for share in range(10, 50, 5)]
    for model in range(12):
        selector = CardSelector(use_types=(a_model(model),))
        for cards in (1, 2, 4, 8):
            for cpu in (500, 1_000, 1_500, 2_000):
                found.append(_pod(cards, CARD_MIB, 100, cpu * cards, selector))
    return found


class Cluster:
    """A ledger with pods on it, and a way to let them come and go."""

    def __init__(
        self, nodes: int, policy: PolicyChoice, *, seed: int = 1, wanted: Sequence[PodRequest] = (), models: int = 1
    ) -> None:
        self.random = Random(seed)
        self.ledger = Ledger()
        for number in range(nodes):
            self.ledger.put_node(a_node(number, model=a_model(number % models)))
        self.book = PolicyBook(self.ledger.fleet, self.ledger.live, default=policy)
        self.decider = Decider(self.ledger, self.book)
        self.live: list[str] = []
        self._shapes = wanted or shapes()
        self._weights = [8 if shape.containers[0].devices[0].count == 1 else 1 for shape in self._shapes]
        self._placed = 0

    def draw(self) -> PodRequest:
        return self.random.choices(self._shapes, self._weights)[0]

    def place(self, request: PodRequest) -> bool:
        self.decider.observe(request)
        allocation = self.decider.choose(request)
        if allocation is None:
            return False
        self._placed += 1
        uid = f"{self._placed:08x}-0000-4000-8000-000000000000"
        self.ledger.reserve(PodRef("default", f"pod-{self._placed}", uid), request, allocation, expires_at=FOREVER)
        self.ledger.commit(uid)
        self.live.append(uid)
        return True

    def leave(self) -> None:
        position = self.random.randrange(len(self.live))
        self.live[position], self.live[-1] = self.live[-1], self.live[position]
        self.ledger.release(self.live.pop())

    def fill(self, pods: int) -> None:
        tries = 0
        while len(self.live) < pods:
            tries += 1
            if tries > 2 * pods:
                raise SystemExit(f"only {len(self.live)} of {pods} pods fit, make the benchmark's mix smaller")
            self.place(self.draw())
