"""Roles, bindings and accounts in memory, as a store would show them."""

from typing import Any

from tessera.embedded.access.roles import BUILTIN_ROLES
from tessera.embedded.documents import Document
from tessera.embedded.store import Key

RBAC = "rbac.authorization.k8s.io"


class Kept:
    def __init__(self, document: Document, version: int) -> None:
        self._document = document
        self.version = version

    def document(self) -> Document:
        return self._document


class Cluster:
    """What is written is there at once; `version` counts the writes."""

    def __init__(self, *, with_builtin_roles: bool = True) -> None:
        self.version = 1
        self.reads = 0
        self._kept: dict[Key, Kept] = {}
        if with_builtin_roles:
            for seeded in BUILTIN_ROLES:
                self.write(seeded.kind.resource, seeded.document)

    def write(self, resource: str, document: Document) -> Document:
        self.version += 1
        metadata = document["metadata"]
        self._kept[Key(resource, metadata.get("namespace", ""), metadata["name"])] = Kept(document, self.version)
        return document

    def remove(self, resource: str, namespace: str, name: str) -> None:
        self.version += 1
        del self._kept[Key(resource, namespace, name)]

    def get(self, key: Key) -> Kept | None:
        return self._kept.get(key)

    def list(self, resource: str, namespace: str = "") -> list[Kept]:
        self.reads += 1
        found = [(key, kept) for key, kept in self._kept.items() if key.resource == resource]
        return [kept for key, kept in sorted(found) if not namespace or key.namespace == namespace]

    # What tests say often.

    def role(self, namespace: str, name: str, *rules: Document) -> None:
        metadata = {"name": name, "namespace": namespace}
        self.write(f"roles.{RBAC}", {"metadata": metadata, "rules": list(rules)})

    def cluster_role(self, name: str, *rules: Document, labels: Document | None = None, **more: Any) -> None:
        metadata = {"name": name, "labels": labels or {}}
        self.write(f"clusterroles.{RBAC}", {"metadata": metadata, "rules": list(rules)} | more)

    def bind(self, namespace: str, kind: str, role: str, *subjects: Document) -> None:
        """In the whole cluster where no namespace is named."""
        reference = {"kind": kind, "name": role, "apiGroup": RBAC}
        metadata = {"name": f"bind-{role}"} | ({"namespace": namespace} if namespace else {})
        plural = "rolebindings" if namespace else "clusterrolebindings"
        self.write(f"{plural}.{RBAC}", {"metadata": metadata, "roleRef": reference, "subjects": list(subjects)})


def rule(verbs: list[str], *resources: str, group: str = "", **more: Any) -> Document:
    return {"verbs": verbs, "apiGroups": [group], "resources": list(resources)} | more


def user(name: str) -> Document:
    return {"kind": "User", "name": name, "apiGroup": RBAC}


def account(namespace: str, name: str, uid: str = "account-uid") -> Document:
    return {"metadata": {"name": name, "namespace": namespace, "uid": uid}}
