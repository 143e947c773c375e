"""Random clusters, what is held on them, and random pods; small enough that every case is worth a look."""

from typing import NamedTuple

from hypothesis import strategies as st

from tessera.engine.deciding import Decider
from tessera.engine.ledger import Ledger
from tessera.engine.policies import PolicyBook
from tessera.model.devices import Device, Host, Link, Node, Taint
from tessera.model.requests import (
    CardSelector,
    ContainerRequest,
    DeviceRequest,
    HostRequest,
    LabelRule,
    PodRequest,
    PolicyChoice,
    Role,
    Toleration,
)
from tests.builders import a_pod, a_ref, a_share, a_want, an_allocation

VENDORS = "NVIDIA", "DCU"
DETERMINISTIC = ("binpack", "spread", "topology-aware", "defrag", "fgd", "best-fit", "dot-product")


class Hold(NamedTuple):
    node: str
    uuid: str
    vendor: str
    memory_mib: int
    cores_percent: int


class Scene(NamedTuple):
    nodes: list[Node]
    holds: list[Hold]
    seen: list[PodRequest]


@st.composite
def devices(draw: st.DrawFn, uuid: str) -> Device:
    memory = draw(st.sampled_from([1000, 1000, 999, 2000]))
    return Device(
        uuid=uuid,
        vendor=draw(st.sampled_from([*VENDORS, "NVIDIA"])),
        model=draw(st.sampled_from(["A100", "A100", "T4"])),
        slots=draw(st.sampled_from([1, 2, 4])),
        memory_mib=memory,
        cores_percent=draw(st.sampled_from([100, 100, 100, 200])),
        numa=draw(st.integers(0, 1)),
        healthy=draw(st.sampled_from([True] * 7 + [False])),
        mode=draw(st.sampled_from(["hami-core", "hami-core", "mps"])),
    )


hosts = st.builds(
    Host,
    cpu_milli=st.sampled_from([2000, 8000, 8000]),
    memory_bytes=st.sampled_from([1000, 4000]),
    pods=st.sampled_from([2, 20, 20]),
    labels=st.sampled_from([(), (("zone", "a"),)]),
    taints=st.sampled_from([(), (), (), (Taint("spot"),)]),
    ready=st.sampled_from([True] * 7 + [False]),
    unschedulable=st.sampled_from([False] * 7 + [True]),
)


@st.composite
def nodes(draw: st.DrawFn, name: str) -> Node:
    cards = tuple(draw(devices(f"{name}-{number}")) for number in range(draw(st.integers(0, 4))))
    uuids = [card.uuid for card in cards]
    links = tuple(
        Link(one, other, draw(st.integers(1, 9)))
        for position, one in enumerate(uuids)
        for other in uuids[:position]
        if draw(st.booleans())
    )
    cordoned = frozenset(uuid for uuid in uuids if draw(st.sampled_from([False] * 7 + [True])))
    return Node(name=name, host=draw(hosts), devices=cards, links=links, cordoned_uuids=cordoned)


@st.composite
def wants(draw: st.DrawFn, vendor: str, uuids: tuple[str, ...] = ()) -> DeviceRequest:
    memory = draw(st.sampled_from(["none", "mib", "percent"]))
    some = st.sampled_from([(), (), (), ("a1",), ("T4",)])
    few = st.sampled_from([(), (), (), (), uuids[:2]])
    return DeviceRequest(
        vendor=vendor,
        count=draw(st.sampled_from([1, 1, 1, 2, 3])),
        memory_mib=draw(st.integers(1, 1100)) if memory == "mib" else 0,
        memory_percent=draw(st.integers(1, 100)) if memory == "percent" else 0,
        cores_percent=draw(st.sampled_from([0, 0, 10, 50, 100])),
        selector=CardSelector(
            use_types=draw(some),
            avoid_types=draw(some),
            use_uuids=draw(few),
            avoid_uuids=draw(few),
            mode=draw(st.sampled_from(["", "", "", "mps"])),
            same_numa=draw(st.booleans()),
        ),
    )


@st.composite
def pods(draw: st.DrawFn, uuids: tuple[str, ...] = (), most_containers: int = 3) -> PodRequest:
    roles = draw(st.lists(st.sampled_from(list(Role)), max_size=most_containers))
    roles.sort(key=lambda role: role is Role.APP)
    containers = [
        ContainerRequest(role, tuple(draw(wants(vendor, uuids)) for vendor in VENDORS if draw(st.booleans())))
        for role in roles
    ]
    host = HostRequest(
        cpu_milli=draw(st.sampled_from([0, 1000, 3000])),
        memory_bytes=draw(st.sampled_from([0, 500, 2000])),
        node_terms=draw(st.sampled_from([(), (), (), ((LabelRule("zone", "In", ("a",)),),)])),
        tolerations=draw(st.sampled_from([(), (), (Toleration(operator="Exists"),)])),
    )
    return PodRequest(containers=tuple(containers), host=host)


@st.composite
def scenes(draw: st.DrawFn) -> Scene:
    cluster = [draw(nodes(f"n{number}")) for number in range(draw(st.integers(0, 4)))]
    cards = [(node.name, card) for node in cluster for card in node.devices]
    holds = [
        Hold(
            name,
            card.uuid,
            card.vendor,
            draw(st.sampled_from([0, 190, 500, 891, card.memory_mib, card.memory_mib + 7])),
            draw(st.sampled_from([0, 0, 50, 100])),
        )
        for name, card in cards
        if draw(st.booleans())
    ]
    return Scene(cluster, holds, draw(st.lists(pods(), max_size=6)))


def uuids_of(scene: Scene) -> tuple[str, ...]:
    return tuple(card.uuid for node in scene.nodes for card in node.devices)


choices = st.builds(
    PolicyChoice,
    node=st.sampled_from(DETERMINISTIC),
    cards=st.one_of(
        st.sampled_from([(name,) for name in (*DETERMINISTIC, "mutex", "numa")]),
        st.tuples(*[st.sampled_from([*DETERMINISTIC, "mutex", "numa"])] * 2),
    ),
)


class Cluster:
    """A scene set up, with what decides on it."""

    def __init__(self, scene: Scene) -> None:
        self.ledger = Ledger()
        for node in scene.nodes:
            self.ledger.put_node(node)
        for number, hold in enumerate(scene.holds):
            self.hold(f"hold-{number}", hold)
        self.book = PolicyBook(self.ledger.fleet, self.ledger.live)
        self.decider = Decider(self.ledger, self.book)
        self.book.fgd.study(scene.seen)
        for request in scene.seen:
            self.decider.observe(request)

    def hold(self, uid: str, hold: Hold) -> None:
        """Somebody holds this, whether it fits or not."""
        request = a_pod(a_want(vendor=hold.vendor, memory_mib=hold.memory_mib, cores_percent=hold.cores_percent))
        share = a_share(hold.uuid, hold.memory_mib, hold.cores_percent, vendor=hold.vendor)
        self.ledger.adopt(a_ref(uid), request, an_allocation(hold.node, share))
