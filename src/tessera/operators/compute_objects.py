"""Computes as the operator reads them, the status that it writes, and what it has made for them.

What was made is kept as plain documents: it is compared as a whole and written as a whole.
"""

import msgspec

from tessera.kube.kinds import kind_of
from tessera.kube.objects import Document, ObjectMeta
from tessera.operators.objects import Condition
from tessera.operators.owning import Named

MANAGER = "kpu-compute-controller"
NAME_LABEL = "compute.kpu.dev/name"
"""On all that is made for a Compute; users cannot replace it, so it is what we look for."""
TOKEN_ANNOTATION = "compute.kpu.dev/token"
GRACE_ANNOTATION = "compute.kpu.dev/deletion-grace-seconds"
DELETION_FINALIZER = "compute.kpu.dev/deletion"
DISABLED = "disabled"
PORT = 50051


class _Part(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    pass


class Tls(_Part, frozen=True, kw_only=True):
    secret_name: str


class SharedMemory(_Part, frozen=True, kw_only=True):
    """One of the two."""

    host_path: str | None = None
    claim_name: str | None = None


class Route(_Part, frozen=True, kw_only=True):
    parent_refs: tuple[Document, ...]
    hostnames: tuple[str, ...] | None = None


class ComputeSpec(_Part, frozen=True, kw_only=True):
    labels: dict[str, str] | None = None
    annotations: dict[str, str] | None = None
    suspend: bool = False
    image: str | None = None
    command: tuple[str, ...] | None = None
    args: tuple[str, ...] | None = None
    env: tuple[Document, ...] | None = None
    resources: dict[str, str | int | float] | None = None
    token: str | None = None
    tls: Tls | None = None
    shared_memory: SharedMemory | None = None
    route: Route | None = None


class Address(_Part, frozen=True, kw_only=True):
    """`type` is Hostname or IPAddress."""

    type: str
    value: str
    port: int | None = None


class ComputeStatus(_Part, frozen=True, kw_only=True):
    observed_generation: int | None = None
    conditions: tuple[Condition, ...] | None = None
    addresses: tuple[Address, ...] | None = None


class ComputeMetadata(ObjectMeta, frozen=True, kw_only=True):
    generation: int | None = None
    annotations: dict[str, str] | None = None
    finalizers: tuple[str, ...] | None = None
    deletion_timestamp: str | None = None


class Compute(Named, frozen=True, kw_only=True):
    metadata: ComputeMetadata
    spec: ComputeSpec = ComputeSpec()
    status: ComputeStatus = ComputeStatus()

    @property
    def is_going(self) -> bool:
        return bool(self.metadata.deletion_timestamp)

    @property
    def has_token(self) -> bool:
        told = (self.metadata.annotations or {}).get(TOKEN_ANNOTATION)
        return DISABLED not in (told, self.spec.token)


COMPUTE_DOCUMENTS = kind_of("compute.kpu.dev", "v1alpha1", "computes", "Compute")
COMPUTES = COMPUTE_DOCUMENTS.decoded_as(Compute)
STATEFUL_SETS = kind_of("apps", "v1", "statefulsets", "StatefulSet")
GRPC_ROUTES = kind_of("gateway.networking.k8s.io", "v1", "grpcroutes", "GRPCRoute")
GATEWAYS = kind_of("gateway.networking.k8s.io", "v1", "gateways", "Gateway")
