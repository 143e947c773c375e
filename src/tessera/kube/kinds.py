"""Kinds: what the API server calls a sort of object, where it serves it, and what we decode it into.

The kind is the argument of every verb: `await client.get(PODS, "web-0", namespace="default")`. Whoever reads a few
fields only derives a kind that decodes into its own struct, `PODS.decoded_as(MyPod)`, and pays for those fields only.
"""

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Generic, TypeVar, cast
from urllib.parse import quote

import msgspec

from tessera.errors import InvalidTarget, UnreadableReply
from tessera.kube.objects import Document

T = TypeVar("T")
OtherT = TypeVar("OtherT")


class Selection(msgspec.Struct, frozen=True, kw_only=True):
    """Which objects of a kind; without a namespace those of all namespaces. Selectors as kubectl takes them."""

    namespace: str = ""
    labels: str = ""
    fields: str = ""

    def params(self) -> dict[str, str]:
        selectors = {"labelSelector": self.labels, "fieldSelector": self.fields}
        return {name: selector for name, selector in selectors.items() if selector}


EVERYTHING = Selection()


@dataclass(frozen=True, kw_only=True)
class Kind(Generic[T]):
    """`plural` is the word in URLs, `name` the word in documents; `group` is empty for the core group."""

    group: str
    version: str
    plural: str
    name: str
    namespaced: bool = True
    shape: type[T]

    @property
    def api_version(self) -> str:
        return f"{self.group}/{self.version}" if self.group else self.version

    def decoded_as(self, shape: type[OtherT]) -> "Kind[OtherT]":
        return cast("Kind[OtherT]", replace(cast("Kind[Any]", self), shape=shape))

    def collection_path(self, namespace: str = "") -> str:
        """Where the objects of one namespace are; of all namespaces, where none is named."""
        prefix = f"/apis/{self.group}" if self.group else "/api"
        if not namespace:
            return f"{prefix}/{self.version}/{self.plural}"
        if not self.namespaced:
            raise InvalidTarget(f'{self.plural}: namespace is "{namespace}", expected none; {self.name} is not in one')
        return f"{prefix}/{self.version}/namespaces/{quote(namespace, safe='')}/{self.plural}"

    def object_path(self, name: str, namespace: str = "", subresource: str = "") -> str:
        if not name:
            raise InvalidTarget(f"{self.plural}: name is empty, expected that of one {self.name}")
        if self.namespaced and not namespace:
            raise InvalidTarget(f"{self.plural} {name}: namespace is empty, expected one; name the namespace")
        path = f"{self.collection_path(namespace)}/{quote(name, safe='')}"
        return f"{path}/{subresource}" if subresource else path

    def decode(self, body: bytes | msgspec.Raw, where: str) -> T:
        """`where` is the object that was asked for, for the sentence if the body does not fit."""
        try:
            return self._decoder.decode(body)
        except msgspec.MsgspecError as error:
            raise UnreadableReply(f"{where}: cannot be read as {self.shape.__name__}: {error}") from None

    @cached_property
    def _decoder(self) -> msgspec.json.Decoder[T]:
        return msgspec.json.Decoder(self.shape)


def kind_of(group: str, version: str, plural: str, name: str, *, namespaced: bool = True) -> Kind[Document]:
    """A kind decoded into plain documents."""
    return Kind(group=group, version=version, plural=plural, name=name, namespaced=namespaced, shape=Document)


PODS = kind_of("", "v1", "pods", "Pod")
NODES = kind_of("", "v1", "nodes", "Node", namespaced=False)
NAMESPACES = kind_of("", "v1", "namespaces", "Namespace", namespaced=False)
CONFIG_MAPS = kind_of("", "v1", "configmaps", "ConfigMap")
SERVICES = kind_of("", "v1", "services", "Service")
SECRETS = kind_of("", "v1", "secrets", "Secret")
SERVICE_ACCOUNTS = kind_of("", "v1", "serviceaccounts", "ServiceAccount")
EVENTS = kind_of("", "v1", "events", "Event")
RESOURCE_QUOTAS = kind_of("", "v1", "resourcequotas", "ResourceQuota")
LEASES = kind_of("coordination.k8s.io", "v1", "leases", "Lease")
DEPLOYMENTS = kind_of("apps", "v1", "deployments", "Deployment")
POD_DISRUPTION_BUDGETS = kind_of("policy", "v1", "poddisruptionbudgets", "PodDisruptionBudget")
CUSTOM_RESOURCE_DEFINITIONS = kind_of(
    "apiextensions.k8s.io", "v1", "customresourcedefinitions", "CustomResourceDefinition", namespaced=False
)
GPU_CLAIMS = kind_of("gpu.scheduling", "v1", "gpuclaims", "GpuClaim")
GPU_GANGS = kind_of("gpu.scheduling", "v1", "gpugangs", "GpuGang")
GPU_NODE_STATUSES = kind_of("gpu.scheduling", "v1", "gpunodestatuses", "GpuNodeStatus", namespaced=False)
POD_GROUPS = kind_of("scheduling.x-k8s.io", "v1alpha1", "podgroups", "PodGroup")
