"""What a pod asks for.

A `PodRequest` holds no identity: two pods that ask for the same thing are equal, and decisions about one serve for the
other. `PodRef` says which pod it is.
"""

from enum import StrEnum

import msgspec


class PodRef(msgspec.Struct, frozen=True):
    namespace: str
    name: str
    uid: str

    def __str__(self) -> str:
        return f"{self.namespace}/{self.name}"


class Role(StrEnum):
    """When a container holds its cards: before the pod runs, or while it runs."""

    INIT = "init"
    SIDECAR = "sidecar"  # an init container with restartPolicy Always: starts in turn and stays
    APP = "app"


class CardSelector(msgspec.Struct, frozen=True, kw_only=True):
    """Which cards the user accepts. Types match as case-insensitive parts of the model; empty means any."""

    use_types: tuple[str, ...] = ()
    avoid_types: tuple[str, ...] = ()
    use_uuids: tuple[str, ...] = ()
    avoid_uuids: tuple[str, ...] = ()
    mode: str = ""
    same_numa: bool = False


ANY_CARD = CardSelector()


class DeviceRequest(msgspec.Struct, frozen=True, kw_only=True):
    """What one container asks of one vendor's cards; every figure but `count` is per card.

    Exactly one of `memory_mib` and `memory_percent` counts: the percentage when it is not zero.
    """

    vendor: str
    count: int
    memory_mib: int = 0
    memory_percent: int = 0
    cores_percent: int = 0
    priority: int = 0
    selector: CardSelector = ANY_CARD

    def memory_on(self, card_memory_mib: int) -> int:
        if self.memory_percent:
            return card_memory_mib * self.memory_percent // 100
        return self.memory_mib


class ContainerRequest(msgspec.Struct, frozen=True):
    """The device requests of one container; empty where it asks for none. Init containers come before the others."""

    role: Role = Role.APP
    devices: tuple[DeviceRequest, ...] = ()


class Toleration(msgspec.Struct, frozen=True, kw_only=True):
    key: str = ""
    operator: str = "Equal"
    value: str = ""
    effect: str = ""


class LabelRule(msgspec.Struct, frozen=True):
    """One match expression of a node selector term."""

    key: str
    operator: str
    values: tuple[str, ...] = ()


class HostRequest(msgspec.Struct, frozen=True, kw_only=True):
    """What the pod asks of the node beside cards. `node_terms` are alternatives; the rules within one all hold."""

    cpu_milli: int = 0
    memory_bytes: int = 0
    node_terms: tuple[tuple[LabelRule, ...], ...] = ()
    tolerations: tuple[Toleration, ...] = ()


class ScoringWeights(msgspec.Struct, frozen=True, kw_only=True):
    """How much the three figures of a card count in binpack and spread."""

    slot: int = 1
    core: int = 1
    memory: int = 1


EQUAL_WEIGHTS = ScoringWeights()


class PolicyChoice(msgspec.Struct, frozen=True, kw_only=True):
    """Which policies the user wants; empty means the scheduler's default. Card policies apply in order."""

    node: str = ""
    cards: tuple[str, ...] = ()
    weights: ScoringWeights = EQUAL_WEIGHTS


DEFAULT_POLICY = PolicyChoice()


class ClaimPolicy(StrEnum):
    """Which cards of a node a claim gets. ANY takes what leaves the rest of the node most useful."""

    ANY = ""
    CONTIGUOUS = "contiguous"
    SPREAD = "spread"
    PREFER_IDS = "preferIds"


class TopologyMode(StrEnum):
    REQUIRED = "Required"
    PREFERRED = "Preferred"
    IGNORE = "Ignore"


class ClaimRequest(msgspec.Struct, frozen=True, kw_only=True):
    """Cards for a pod as a whole: all its containers see them, and they are charged once.

    `card` says how many, and what each of them is charged; a claim to cards alone takes all of each. `pinned_ids` are
    the only ones that will do, where there are some. `min_bandwidth_gbps` is between any two of the cards.
    """

    card: DeviceRequest
    policy: ClaimPolicy = ClaimPolicy.ANY
    prefer_ids: tuple[int, ...] = ()
    topology: TopologyMode = TopologyMode.IGNORE
    min_bandwidth_gbps: int = 0
    pinned_ids: tuple[int, ...] = ()

    @property
    def is_exclusive(self) -> bool:
        return self.card.memory_percent == 100 and self.card.cores_percent == 100


class PodRequest(msgspec.Struct, frozen=True, kw_only=True, cache_hash=True):
    containers: tuple[ContainerRequest, ...] = ()
    host: HostRequest = HostRequest()
    policy: PolicyChoice = DEFAULT_POLICY
    claim: ClaimRequest | None = None

    @property
    def wants_devices(self) -> bool:
        return self.claim is not None or any(container.devices for container in self.containers)
