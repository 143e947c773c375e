"""Things of a namespace that we look after, and whether what is there was made for one of them."""

from typing import Any

import msgspec

from tessera.kube.objects import Document, ObjectKey, ObjectMeta


class Named(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """One of them. A subclass says more of its metadata."""

    metadata: ObjectMeta

    @property
    def name(self) -> str:
        return self.metadata.name or ""

    @property
    def namespace(self) -> str:
        return self.metadata.namespace or ""

    @property
    def uid(self) -> str:
        return self.metadata.uid or ""

    @property
    def key(self) -> ObjectKey:
        return ObjectKey(self.namespace, self.name)


class OwnerReference(msgspec.Struct, frozen=True, kw_only=True):
    kind: str
    name: str
    uid: str
    controller: bool = False


def controller_of(document: Document) -> OwnerReference | None:
    """Who manages an object, if anybody does."""
    references: list[dict[str, Any]] = document["metadata"].get("ownerReferences") or []
    owners = msgspec.convert(references, list[OwnerReference])
    return next((owner for owner in owners if owner.controller), None)


def is_owned(document: Document, owner: Named) -> bool:
    found = controller_of(document)
    return found is not None and found.uid == owner.uid
