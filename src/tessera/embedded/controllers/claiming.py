"""Who belongs to whom: a controller takes in what its selector matches and nobody manages, and lets go of what it no
longer matches.
"""

from collections.abc import Iterable, Sequence
from typing import Any, Generic, NamedTuple, TypeVar

import msgspec

from tessera.embedded.controllers.objects import Metadata, Thing, refer
from tessera.embedded.controllers.writes import Patch, change
from tessera.embedded.resources.label_selectors import is_empty, matches
from tessera.kube.kinds import Kind
from tessera.kube.objects import Document

T = TypeVar("T", bound=Thing)


class Claim(NamedTuple, Generic[T]):
    """`mine` are managed by the claimant already; the writes bring in and let go of others."""

    mine: Sequence[T]
    writes: Sequence[Patch]


class Claimant(NamedTuple):
    """`selector` of None takes in nothing and lets go of nothing."""

    kind: Kind[Any]
    metadata: Metadata
    selector: Document | None


def claim(claimant: Claimant, kind: Kind[T], managed: Iterable[T], unmanaged: Iterable[T]) -> Claim[T]:
    """From the things of this kind that the claimant manages, and those in its namespace that nobody does."""
    selector, is_going = claimant.selector, claimant.metadata.is_going
    if selector is None or is_empty(selector):
        return Claim(list(managed), [])
    mine: list[T] = []
    writes: list[Patch] = []
    for thing in managed:
        if matches(selector, thing.metadata.labels):
            mine.append(thing)
        elif not is_going:
            writes.append(_let_go(kind, thing.metadata, claimant.metadata.uid))
    if not is_going:
        strays = [thing for thing in unmanaged if matches(selector, thing.metadata.labels)]
        writes += [_take_in(kind, one.metadata, claimant) for one in strays if not one.metadata.is_going]
    return Claim(mine, writes)


def _take_in(kind: Kind[Any], metadata: Metadata, claimant: Claimant) -> Patch:
    owners = [*_written(metadata), refer(claimant.kind, claimant.metadata)]
    return change(kind, metadata, metadata={"ownerReferences": owners})


def _let_go(kind: Kind[Any], metadata: Metadata, uid: str) -> Patch:
    owners = [owner for owner in _written(metadata) if owner["uid"] != uid]
    return change(kind, metadata, metadata={"ownerReferences": owners or None})


def _written(metadata: Metadata) -> list[Document]:
    return [msgspec.to_builtins(owner) for owner in metadata.owners]
