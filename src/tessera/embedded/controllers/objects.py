"""Objects as controllers keep them in caches: the fields that decisions are made from, whatever the kind.

All have the same metadata, so that the garbage collector can read the caches of the others.
"""

from typing import Any

import msgspec

from tessera.kube import kinds
from tessera.kube.event_series import ObjectReference
from tessera.kube.kinds import Kind, kind_of
from tessera.kube.objects import Document, ObjectKey

Labels = dict[str, str]


class OwnerReference(msgspec.Struct, frozen=True, kw_only=True, rename="camel", gc=False, omit_defaults=True):
    api_version: str
    kind: str
    name: str
    uid: str
    controller: bool | None = None
    block_owner_deletion: bool | None = None


class Metadata(msgspec.Struct, frozen=True, kw_only=True, rename="camel", gc=False):
    name: str
    namespace: str = ""
    uid: str = ""
    resource_version: str = ""
    generation: int = 0
    labels: Labels | None = None
    annotations: Labels | None = None
    creation_timestamp: str = ""
    deletion_timestamp: str | None = None
    owner_references: tuple[OwnerReference, ...] | None = None
    finalizers: tuple[str, ...] | None = None

    @property
    def key(self) -> ObjectKey:
        return ObjectKey(self.namespace, self.name)

    @property
    def is_going(self) -> bool:
        return self.deletion_timestamp is not None

    @property
    def owners(self) -> tuple[OwnerReference, ...]:
        return self.owner_references or ()

    @property
    def controller(self) -> OwnerReference | None:
        """The one owner who manages it."""
        return next((owner for owner in self.owners if owner.controller), None)

    def precondition(self) -> Document:
        """What a patch names in its metadata to be refused if the object has changed since."""
        return {"uid": self.uid, "resourceVersion": self.resource_version}


class Thing(msgspec.Struct, frozen=True, kw_only=True, rename="camel", gc=False):
    """Anything at all, by its metadata."""

    metadata: Metadata


class Spec(msgspec.Struct, frozen=True, kw_only=True, rename="camel", gc=False):
    """What all that make pods have in common. A selector that is absent selects nothing."""

    selector: Document | None = None
    template: Document = {}
    replicas: int = 1
    min_ready_seconds: int = 0


class ReplicaSet(Thing, frozen=True, kw_only=True, gc=False):
    spec: Spec
    status: Document = {}


class DeploymentSpec(Spec, frozen=True, kw_only=True, gc=False):
    strategy: Document = {}
    paused: bool = False
    revision_history_limit: int | None = None
    progress_deadline_seconds: int | None = None


class Deployment(Thing, frozen=True, kw_only=True, gc=False):
    spec: DeploymentSpec
    status: Document = {}


class StatefulSetSpec(Spec, frozen=True, kw_only=True, gc=False):
    service_name: str = ""
    pod_management_policy: str = "OrderedReady"
    update_strategy: Document = {}
    ordinals: Document | None = None


class StatefulSet(Thing, frozen=True, kw_only=True, gc=False):
    spec: StatefulSetSpec
    status: Document = {}


class DaemonSetSpec(Spec, frozen=True, kw_only=True, gc=False):
    update_strategy: Document = {}


class DaemonSet(Thing, frozen=True, kw_only=True, gc=False):
    spec: DaemonSetSpec
    status: Document = {}


class JobSpec(msgspec.Struct, frozen=True, kw_only=True, rename="camel", gc=False):
    """Without `completions`, pods agree among themselves: the Job is done when one has succeeded and all have ended."""

    selector: Document | None = None
    template: Document = {}
    parallelism: int = 1
    completions: int | None = None
    completion_mode: str = "NonIndexed"
    backoff_limit: int = 6
    active_deadline_seconds: int | None = None
    ttl_seconds_after_finished: int | None = None
    suspend: bool = False
    pod_replacement_policy: str = "TerminatingOrFailed"
    pod_failure_policy: Document | None = None
    managed_by: str | None = None

    @property
    def is_indexed(self) -> bool:
        return self.completion_mode == "Indexed"


class Job(Thing, frozen=True, kw_only=True, gc=False):
    spec: JobSpec
    status: Document = {}


class ServiceSpec(msgspec.Struct, frozen=True, kw_only=True, rename="camel", gc=False):
    selector: Labels | None = None
    ports: tuple[Document, ...] | None = None
    cluster_ip: str | None = msgspec.field(name="clusterIP", default=None)
    type: str = "ClusterIP"
    publish_not_ready_addresses: bool = False


class Service(Thing, frozen=True, kw_only=True, gc=False):
    spec: ServiceSpec


class EndpointSlice(Thing, frozen=True, kw_only=True, gc=False):
    address_type: str = "IPv4"
    endpoints: tuple[Document, ...] | None = None
    ports: tuple[Document, ...] | None = None


class BudgetSpec(msgspec.Struct, frozen=True, kw_only=True, rename="camel", gc=False):
    """`min_available` and `max_unavailable` are numbers or percentages; one of them is said at most."""

    selector: Document | None = None
    min_available: int | str | None = None
    max_unavailable: int | str | None = None


class Budget(Thing, frozen=True, kw_only=True, gc=False):
    spec: BudgetSpec
    status: Document = {}


class NamespaceSpec(msgspec.Struct, frozen=True, kw_only=True, rename="camel", gc=False):
    finalizers: tuple[str, ...] | None = None


class Namespace(Thing, frozen=True, kw_only=True, gc=False):
    spec: NamespaceSpec = NamespaceSpec()
    status: Document = {}


class NodeSpec(msgspec.Struct, frozen=True, kw_only=True, rename="camel", gc=False):
    taints: tuple[Document, ...] | None = None
    unschedulable: bool = False


class NodeStatus(msgspec.Struct, frozen=True, kw_only=True, rename="camel", gc=False):
    conditions: tuple[Document, ...] | None = None


class Node(Thing, frozen=True, kw_only=True, gc=False):
    spec: NodeSpec = NodeSpec()
    status: NodeStatus = NodeStatus()


class LeaseSpec(msgspec.Struct, frozen=True, kw_only=True, rename="camel", gc=False):
    renew_time: str | None = None


class Lease(Thing, frozen=True, kw_only=True, gc=False):
    spec: LeaseSpec = LeaseSpec()


class Definition(Thing, frozen=True, kw_only=True, gc=False):
    spec: Document
    status: Document = {}


REPLICA_SETS = kind_of("apps", "v1", "replicasets", "ReplicaSet").decoded_as(ReplicaSet)
DEPLOYMENTS = kind_of("apps", "v1", "deployments", "Deployment").decoded_as(Deployment)
STATEFUL_SETS = kind_of("apps", "v1", "statefulsets", "StatefulSet").decoded_as(StatefulSet)
DAEMON_SETS = kind_of("apps", "v1", "daemonsets", "DaemonSet").decoded_as(DaemonSet)
JOBS = kind_of("batch", "v1", "jobs", "Job").decoded_as(Job)
SERVICES = kind_of("", "v1", "services", "Service").decoded_as(Service)
SLICES = kind_of("discovery.k8s.io", "v1", "endpointslices", "EndpointSlice").decoded_as(EndpointSlice)
BUDGETS = kind_of("policy", "v1", "poddisruptionbudgets", "PodDisruptionBudget").decoded_as(Budget)
NAMESPACES = kinds.NAMESPACES.decoded_as(Namespace)
NODES = kinds.NODES.decoded_as(Node)
LEASES = kinds.LEASES.decoded_as(Lease)
DEFINITIONS = kinds.CUSTOM_RESOURCE_DEFINITIONS


def reference_to(kind: Kind[Any], metadata: Metadata) -> ObjectReference:
    """What an event names that is about this object."""
    return ObjectReference(
        kind=kind.name,
        name=metadata.name,
        namespace=metadata.namespace,
        uid=metadata.uid,
        api_version=kind.api_version,
    )


def refer(kind: Kind[Any], metadata: Metadata) -> Document:
    """The reference of something that this object manages, and that must go before it does."""
    reference = OwnerReference(
        api_version=kind.api_version,
        kind=kind.name,
        name=metadata.name,
        uid=metadata.uid,
        controller=True,
        block_owner_deletion=True,
    )
    return msgspec.to_builtins(reference)
