"""What a node has: cards, the links between them, and the host around them."""

import msgspec

DEFAULT_MODE = "hami-core"


class MigPlacement(msgspec.Struct, frozen=True):
    start: int
    size: int


class MigProfile(msgspec.Struct, frozen=True, kw_only=True):
    """One way to slice a card in hardware."""

    name: str
    memory_mib: int
    cores_percent: int = 0
    slices: int = 0
    placements: tuple[MigPlacement, ...] = ()


class Device(msgspec.Struct, frozen=True, kw_only=True):
    """One card as its node reports it. `vendor` is the vendor's common word, `model` what the hardware calls itself.

    Cards of one `island` are joined by fast links; `bandwidth_gbps` is what a card has to the others of its island.
    """

    uuid: str
    index: int = 0
    vendor: str
    model: str
    slots: int
    memory_mib: int
    cores_percent: int = 100
    numa: int = 0
    island: str = ""
    bandwidth_gbps: int = 0
    healthy: bool = True
    mode: str = DEFAULT_MODE
    mig_profiles: tuple[MigProfile, ...] = ()
    network_id: int = 0


class Link(msgspec.Struct, frozen=True):
    """How well two cards of one node talk; higher is faster. Symmetric."""

    one: str
    other: str
    score: int


class Taint(msgspec.Struct, frozen=True):
    key: str
    value: str = ""
    effect: str = "NoSchedule"


class Host(msgspec.Struct, frozen=True, kw_only=True):
    """What of a node decides whether a pod can be there at all, cards apart."""

    cpu_milli: int
    memory_bytes: int
    pods: int = 110
    labels: tuple[tuple[str, str], ...] = ()
    taints: tuple[Taint, ...] = ()
    ready: bool = True
    unschedulable: bool = False


class Node(msgspec.Struct, frozen=True, kw_only=True):
    name: str
    host: Host
    devices: tuple[Device, ...] = ()
    links: tuple[Link, ...] = ()
    cordoned_uuids: frozenset[str] = frozenset()
