"""Requests and neighbours for admission to look at."""

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any, NamedTuple

from tessera.embedded.admitting import Request
from tessera.embedded.documents import Document, Frozen
from tessera.embedded.kinds import Kind

CONFIG_MAPS = Kind(version="v1", kind="ConfigMap", plural="configmaps")
PODS = Kind(version="v1", kind="Pod", plural="pods")
NODES = Kind(version="v1", kind="Node", plural="nodes", is_namespaced=False)
NAMESPACES = Kind(version="v1", kind="Namespace", plural="namespaces", is_namespaced=False)
LEASES = Kind(group="coordination.k8s.io", version="v1", kind="Lease", plural="leases")


class Person(NamedTuple):
    name: str
    uid: str = ""
    groups: tuple[str, ...] = ("system:authenticated",)
    extra: Mapping[str, tuple[str, ...]] = MappingProxyType({})


ALICE = Person("alice")


class Cluster:
    """What is there, by resource and name; names are unique across namespaces."""

    def __init__(self, **resources: Sequence[Document]) -> None:
        self._resources: dict[str, list[Document]] = {name: list(found) for name, found in resources.items()}
        self.add("namespaces", {"metadata": {"name": "team", "labels": {"kubernetes.io/metadata.name": "team"}}})
        self.add("serviceaccounts", {"metadata": {"name": "default"}})

    def add(self, resource: str, *documents: Document) -> None:
        self._resources.setdefault(resource, []).extend(documents)

    def get(self, resource: str, namespace: str, name: str) -> Frozen | None:  # noqa: ARG002 # names are unique
        found = [one for one in self._resources.get(resource, ()) if one["metadata"]["name"] == name]
        return found[-1] if found else None

    def list(self, resource: str, namespace: str = "") -> Sequence[Frozen]:  # noqa: ARG002 # there is one namespace
        return sorted(self._resources.get(resource, ()), key=lambda document: document["metadata"]["name"])


def config_map(**data: str) -> Document:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "settings"}, "data": data}


def pod(name: str = "worker", **spec: Any) -> Document:
    containers = [{"name": "main", "image": "none"}]
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": "team"},
        "spec": {"containers": containers} | spec,
    }


def gpu_pod(name: str = "worker", **resources: dict[str, str]) -> Document:
    return pod(name, containers=[{"name": "main", "image": "none", "resources": resources}])


def creation(kind: Kind, document: Document, **fields: Any) -> Request:
    return request("CREATE", kind, object=document, **fields)


def update(kind: Kind, old: Document, new: Document, **fields: Any) -> Request:
    return request("UPDATE", kind, object=new, old_object=old, **fields)


def request(operation: str, kind: Kind, **fields: Any) -> Request:
    document = fields.get("object") or fields.get("old_object") or {}
    known = {"name": document["metadata"].get("name", ""), "user": ALICE, "uid": "a-uid"}
    known["namespace"] = "team" if kind.is_namespaced else ""
    return Request(operation=operation, kind=kind, **(known | fields))
