"""A pod as it is kept in a cache: what scheduling cards needs to know, and no more.

Ten thousand of them lie in memory, and most differ in little: pods of one job ask for the same, tolerate the same and
are in the same condition. So equal parts are kept once. What a pod asks for is `model.pod_documents`; what the cluster
adds is here.
"""

import sys
from typing import Any, TypeVar

import msgspec

from tessera.kube.kinds import PODS
from tessera.model import pod_documents

T = TypeVar("T")
SHARED = (
    "containers",
    "init_containers",
    "tolerations",
    "affinity",
    "node_selector",
    "topology_spread_constraints",
    "resource_claims",
    "scheduling_gates",
)
OVER = frozenset({"Succeeded", "Failed"})
"""The phases of pods whose containers have ended for good."""
LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"


class Pool:
    """Keeps equal parts once. When it is full it forgets all: to share is a saving, never a need."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._parts: dict[tuple[str, bytes], object] = {}
        self._encode = msgspec.msgpack.Encoder().encode

    def share(self, what: str, part: T) -> T:
        """A part equal to this one; `what` keeps apart those that only look alike."""
        if len(self._parts) >= self._most:
            self._parts.clear()
        return self._parts.setdefault((what, self._encode(part)), part)  # pyright: ignore[reportReturnType]


_pool = Pool(most=20_000)


class _Part(msgspec.Struct, frozen=True, kw_only=True, rename="camel", gc=False):
    pass


class OwnerReference(_Part, frozen=True, kw_only=True):
    kind: str
    name: str
    uid: str
    controller: bool = False


class Metadata(pod_documents.Metadata, frozen=True, kw_only=True, gc=False):
    """Without the copy of the whole pod that `kubectl apply` leaves among the annotations."""

    resource_version: str | None = None
    labels: dict[str, Any] | None = None
    creation_timestamp: str | None = None
    deletion_timestamp: str | None = None
    owner_references: tuple[OwnerReference, ...] | None = None

    def __post_init__(self) -> None:
        if self.annotations and LAST_APPLIED in self.annotations:
            kept = {key: value for key, value in self.annotations.items() if key != LAST_APPLIED}
            msgspec.structs.force_setattr(self, "annotations", kept)


class Container(pod_documents.Container, frozen=True, kw_only=True, gc=False):
    name: str


class Spec(pod_documents.Spec, frozen=True, kw_only=True, gc=False):
    containers: tuple[Container, ...]
    init_containers: tuple[Container, ...] | None = None
    node_name: str | None = None
    scheduler_name: str | None = None
    priority: int | None = None

    def __post_init__(self) -> None:
        for field in SHARED:
            part = getattr(self, field)
            if part is not None:
                msgspec.structs.force_setattr(self, field, _pool.share(field, part))
        for field in ("node_name", "scheduler_name"):
            name = getattr(self, field)
            if name is not None:
                msgspec.structs.force_setattr(self, field, sys.intern(name))


class Condition(_Part, frozen=True, kw_only=True):
    type: str
    status: str
    reason: str | None = None
    message: str | None = None


class Running(_Part, frozen=True, kw_only=True):
    """Since when is nobody's business here: pods that run are alike, and are kept once."""


class ContainerState(_Part, frozen=True, kw_only=True):
    running: Running | None = None


class ContainerStatus(_Part, frozen=True, kw_only=True):
    state: ContainerState | None = None


class Status(_Part, frozen=True, kw_only=True):
    phase: str | None = None
    conditions: tuple[Condition, ...] | None = None
    container_statuses: tuple[ContainerStatus, ...] | None = None
    init_container_statuses: tuple[ContainerStatus, ...] | None = None

    @property
    def has_running_containers(self) -> bool:
        """Whether the kubelet has told of a container that runs, and not yet of its end."""
        containers = (*(self.init_container_statuses or ()), *(self.container_statuses or ()))
        return any(container.state and container.state.running for container in containers)


NO_METADATA = Metadata()
NO_STATUS = Status()


class Pod(pod_documents.PodDocument, frozen=True, kw_only=True, gc=False):
    metadata: Metadata = NO_METADATA
    spec: Spec
    status: Status = NO_STATUS

    def __post_init__(self) -> None:
        msgspec.structs.force_setattr(self, "status", _pool.share("status", self.status))


CACHED_PODS = PODS.decoded_as(Pod)
