"""Writes as data: what a decision wants done, and how it is done.

A decision is made from caches, which may be a moment old. So every write says what it was decided on, by name, uid or
resourceVersion, and one that comes too late is refused and changes nothing. That is no failure: whoever was faster has
changed something that is watched, and the decision is made anew when the watch tells it.
"""

from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import Any

import msgspec

from tessera.embedded.controllers.objects import Metadata
from tessera.errors import AlreadyExists, Conflict, Forbidden, NotFound
from tessera.kube.client import Client, Deletion, Propagation
from tessera.kube.kinds import Kind
from tessera.kube.objects import Document, ObjectKey

NONE: Mapping[str, str] = MappingProxyType({})


class Create(msgspec.Struct, frozen=True):
    kind: Kind[Any]
    key: ObjectKey
    body: Document


class Patch(msgspec.Struct, frozen=True):
    kind: Kind[Any]
    key: ObjectKey
    body: Document
    subresource: str = ""


class Delete(msgspec.Struct, frozen=True):
    kind: Kind[Any]
    key: ObjectKey
    how: Deletion


Write = Create | Patch | Delete


def delete(kind: Kind[Any], metadata: Metadata, propagation: Propagation | None = None) -> Delete:
    """Of this incarnation, in whatever state it is by now."""
    return Delete(kind, metadata.key, Deletion(uid=metadata.uid, propagation=propagation))


def change(kind: Kind[Any], seen: Metadata, **parts: Any) -> Patch:
    """Of the object as it was seen. Parts are merged: what is None in them is taken away."""
    named = {**parts.get("metadata", {}), **seen.precondition()}
    return Patch(kind, seen.key, {**parts, "metadata": named})


def put_status(
    kind: Kind[Any], seen: Metadata, before: Document, after: Document, annotations: Mapping[str, str] = NONE
) -> list[Patch]:
    """Nothing, if all is said already. Annotations that come with a status do not count as a wish."""
    told = seen.annotations or {}
    if before == after and all(told.get(name) == value for name, value in annotations.items()):
        return []
    merged = {**dict.fromkeys(before.keys() - after.keys()), **after}
    metadata = {**seen.precondition(), **({"annotations": dict(annotations)} if annotations else {})}
    return [Patch(kind, seen.key, {"metadata": metadata, "status": merged}, "status")]


async def carry_out(client: Client, writes: Iterable[Write]) -> None:
    for write in writes:
        await carry_out_one(client, write)


async def carry_out_one(client: Client, write: Write) -> bool:
    """Whether it was done: what comes too late is let go; anything else that fails is raised."""
    namespace, name = write.key
    try:
        match write:
            case Create():
                await client.create(write.kind.decoded_as(Document), write.body, namespace=namespace)
            case Patch():
                kind = write.kind.decoded_as(Document)
                await client.patch(kind, name, write.body, namespace=namespace, subresource=write.subresource)
            case Delete():
                await client.delete(write.kind, name, namespace=namespace, how=write.how)
    except (AlreadyExists, Conflict, NotFound):
        return False
    except Forbidden as error:
        if _is_namespace_going(error):
            return False
        raise
    return True


def _is_namespace_going(error: Forbidden) -> bool:
    causes: Sequence[Document] = msgspec.convert(error.details.get("causes") or (), list[Document])
    return any(cause.get("reason") == "NamespaceTerminating" for cause in causes)
