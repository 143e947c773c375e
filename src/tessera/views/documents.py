"""The parts of Kubernetes objects that views are made of."""

from datetime import datetime

import msgspec

from tessera.kube import pods
from tessera.kube.kinds import EVENTS, LEASES, NODES, PODS
from tessera.kube.lease_records import Lease
from tessera.kube.objects import ObjectMeta
from tessera.model import nodes
from tessera.model.annotations.times import find_time


class _Part(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    pass


class NodeMetadata(nodes.NodeMetadata, frozen=True, kw_only=True):
    namespace: str | None = None
    uid: str | None = None
    resource_version: str | None = None


class NodeCondition(nodes.NodeCondition, frozen=True, kw_only=True):
    message: str | None = None


class NodeStatus(nodes.NodeStatus, frozen=True, kw_only=True):
    conditions: tuple[NodeCondition, ...] | None = None


class ViewedNode(nodes.NodeDocument, frozen=True, kw_only=True):
    metadata: NodeMetadata
    status: NodeStatus | None = None

    def trouble(self, kind: str) -> str:
        """What a condition says that does not hold, and nothing of one that does or that nobody has said."""
        said = self.status.conditions or () if self.status else ()
        return next((one.message or one.type for one in said if (one.type, one.status) == (kind, "False")), "")


class Condition(pods.Condition, frozen=True, kw_only=True):
    message: str | None = None
    last_transition_time: str | None = None


class Waiting(_Part, frozen=True, kw_only=True):
    reason: str | None = None
    message: str | None = None


class ContainerState(pods.ContainerState, frozen=True, kw_only=True):
    waiting: Waiting | None = None


class ContainerStatus(pods.ContainerStatus, frozen=True, kw_only=True):
    state: ContainerState | None = None


class PodStatus(pods.Status, frozen=True, kw_only=True):
    conditions: tuple[Condition, ...] | None = None
    container_statuses: tuple[ContainerStatus, ...] | None = None
    init_container_statuses: tuple[ContainerStatus, ...] | None = None
    reason: str | None = None
    message: str | None = None

    def condition(self, kind: str) -> Condition | None:
        return next((said for said in self.conditions or () if said.type == kind), None)

    def is_true(self, kind: str) -> bool:
        said = self.condition(kind)
        return said is not None and said.status == "True"


NO_STATUS = PodStatus()


class ViewedPod(pods.Pod, frozen=True, kw_only=True):
    status: PodStatus = NO_STATUS

    @property
    def containers(self) -> tuple[pods.Container, ...]:
        """In the order in which allocations count them."""
        return (*(self.spec.init_containers or ()), *self.spec.containers)


class Involved(_Part, frozen=True, kw_only=True):
    uid: str | None = None


class EventSeries(_Part, frozen=True, kw_only=True):
    last_observed_time: str | None = None


class ViewedEvent(_Part, frozen=True, kw_only=True):
    metadata: ObjectMeta
    involved_object: Involved
    type: str | None = None
    reason: str | None = None
    message: str | None = None
    last_timestamp: str | None = None
    event_time: str | None = None
    series: EventSeries | None = None

    @property
    def at(self) -> datetime | None:
        """When it was last seen."""
        last = self.series.last_observed_time if self.series else None
        return read_time(last or self.last_timestamp or self.event_time)


class LeaseMetadata(ObjectMeta, frozen=True, kw_only=True):
    annotations: dict[str, str] | None = None


class ViewedLease(Lease, frozen=True, kw_only=True):
    metadata: LeaseMetadata


VIEWED_NODES = NODES.decoded_as(ViewedNode)
VIEWED_PODS = PODS.decoded_as(ViewedPod)
VIEWED_EVENTS = EVENTS.decoded_as(ViewedEvent)
VIEWED_LEASES = LEASES.decoded_as(ViewedLease)
POD_WARNINGS = "involvedObject.kind=Pod,type=Warning"


def read_time(text: str | None) -> datetime | None:
    return find_time(text) if text else None
