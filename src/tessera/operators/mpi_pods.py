"""Launchers and workers of MPIJobs, as far as is needed to say what became of them, and why."""

import msgspec

from tessera.kube.kinds import PODS
from tessera.kube.objects import ObjectMeta
from tessera.operators.owning import OwnerReference

LOST = "ContainerStatusUnknown"


class _Part(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    pass


class PodMetadata(ObjectMeta, frozen=True, kw_only=True):
    labels: dict[str, str] | None = None
    creation_timestamp: str | None = None
    deletion_timestamp: str | None = None
    owner_references: tuple[OwnerReference, ...] | None = None


class PodCondition(_Part, frozen=True, kw_only=True):
    type: str
    status: str
    message: str | None = None


class Terminated(_Part, frozen=True, kw_only=True):
    exit_code: int = 0
    reason: str = ""
    message: str = ""


class Waiting(_Part, frozen=True, kw_only=True):
    reason: str = ""
    message: str = ""


class ContainerState(_Part, frozen=True, kw_only=True):
    waiting: Waiting | None = None
    terminated: Terminated | None = None


class ContainerStatus(_Part, frozen=True, kw_only=True):
    name: str = ""
    state: ContainerState = ContainerState()

    @property
    def words(self) -> str:
        """What is told of a container that does not run."""
        if self.state.waiting is not None:
            return self.state.waiting.message or self.state.waiting.reason
        ended = self.state.terminated
        if ended is None or not ended.exit_code:
            return ""
        message = ended.message.replace("\0", "").strip()
        said = f": {message}" if message else ""
        return f"container {self.name} ended with exit code {ended.exit_code}{said}"


class PodStatus(_Part, frozen=True, kw_only=True):
    phase: str = "Pending"
    reason: str = ""
    message: str = ""
    conditions: tuple[PodCondition, ...] | None = None
    container_statuses: tuple[ContainerStatus, ...] | None = None


class MpiPod(_Part, frozen=True, kw_only=True):
    """A launcher or worker. `is_ready` as its readiness says; `why` is what stands in its way, as far as is told."""

    metadata: PodMetadata
    status: PodStatus = PodStatus()

    @property
    def name(self) -> str:
        return self.metadata.name or ""

    @property
    def owner_uid(self) -> str:
        return next((one.uid for one in self.metadata.owner_references or () if one.controller), "")

    @property
    def is_going(self) -> bool:
        return bool(self.metadata.deletion_timestamp)

    @property
    def is_ready(self) -> bool:
        return any((one.type, one.status) == ("Ready", "True") for one in self.status.conditions or ())

    @property
    def is_lost(self) -> bool:
        """Whether it ended with the engine that ran it, and through no fault of its own."""
        ends = (one.state.terminated for one in self.status.container_statuses or ())
        return self.status.phase == "Failed" and any(end.reason == LOST for end in ends if end is not None)

    @property
    def why(self) -> str:
        refused = (one.message or "" for one in self.status.conditions or () if one.type == "PodScheduled")
        containers = (one.words for one in self.status.container_statuses or ())
        told = (self.status.message, *refused, *containers, self.status.reason)
        return next(filter(None, told), "")


MPI_PODS = PODS.decoded_as(MpiPod)
