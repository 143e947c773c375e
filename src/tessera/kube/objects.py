"""What every Kubernetes object says about itself, whatever it was decoded into.

A caller decodes into plain documents or into its own structs. Caches and queues need only to know which object it is
and which state of it; that is asked here, once, in one way.
"""

from collections.abc import Mapping
from typing import Any, NamedTuple, Protocol, cast

import msgspec

Document = dict[str, Any]


class ObjectKey(NamedTuple):
    """Which object of its kind. The namespace is empty for kinds that have none."""

    namespace: str
    name: str

    def __str__(self) -> str:
        return f"{self.namespace}/{self.name}" if self.namespace else self.name


class Metadata(Protocol):
    """What a struct's `metadata` must have for `identify`."""

    @property
    def name(self) -> str | None: ...
    @property
    def namespace(self) -> str | None: ...
    @property
    def uid(self) -> str | None: ...
    @property
    def resource_version(self) -> str | None: ...


class HasMetadata(Protocol):
    @property
    def metadata(self) -> Metadata | None: ...


class Identity(NamedTuple):
    key: ObjectKey
    uid: str
    resource_version: str


class ObjectMeta(msgspec.Struct, frozen=True, kw_only=True, rename="camel", gc=False):
    """Metadata for structs that want no more than this; a subclass adds fields."""

    name: str | None = None
    namespace: str | None = None
    uid: str | None = None
    resource_version: str | None = None


class AnyObject(msgspec.Struct, frozen=True, gc=False):
    """Decodes from every Kubernetes object, also from one that its own struct does not fit."""

    metadata: ObjectMeta | None = None


def identify(thing: object) -> Identity:
    """Which object this is, and which state of it."""
    if isinstance(thing, dict):
        return _identify_document(cast("Document", thing))
    metadata = cast("HasMetadata", thing).metadata
    if metadata is None:
        return Identity(ObjectKey("", ""), "", "")
    key = ObjectKey(metadata.namespace or "", metadata.name or "")
    return Identity(key, metadata.uid or "", metadata.resource_version or "")


def _identify_document(document: Document) -> Identity:
    metadata: Mapping[str, str] = document.get("metadata") or {}
    key = ObjectKey(metadata.get("namespace") or "", metadata.get("name") or "")
    return Identity(key, metadata.get("uid") or "", metadata.get("resourceVersion") or "")
