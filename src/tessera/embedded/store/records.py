"""What is kept: objects by key, each of their versions, and each change from one version to the next."""

from collections.abc import Callable, Hashable
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Literal, NamedTuple, TypeVar

import msgspec

from tessera.embedded.documents import Document, Frozen

T = TypeVar("T")
_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder(dict[str, Any]).decode


class Key(NamedTuple):
    """`resource` is `Kind.resource`, such as "deployments.apps"; `namespace` is empty where the kind has none."""

    resource: str
    namespace: str
    name: str


class Record(NamedTuple):
    """One object at one version, which its `metadata.resourceVersion` says as well."""

    key: Key
    version: int
    body: bytes

    @classmethod
    def of(cls, key: Key, version: int, document: Frozen) -> "Record":
        """The document itself is left as it is."""
        metadata = {**document.get("metadata", {}), "resourceVersion": str(version)}
        return cls(key, version, _encode({**document, "metadata": metadata}))

    def document(self) -> Document:
        """Decoded anew: the caller's own."""
        return _decode(self.body)

    def stamped(self, version: int) -> "Record":
        """The same state, said to be of another version."""
        return Record.of(self.key, version, self.document())


@dataclass(frozen=True)
class Change:
    """One object, changed at one version. `replaced` is what was there as it was, `after` what is there now.

    All who follow are given the same one, so what several of them need of it can be made once.
    """

    version: int
    replaced: Record | None
    after: Record | None
    _made: dict[Hashable, Any] = field(default_factory=dict[Hashable, Any], init=False, repr=False, compare=False)

    @property
    def key(self) -> Key:
        record = self.after or self.replaced
        assert record is not None, "a change is from something or to something"
        return record.key

    @property
    def type(self) -> Literal["ADDED", "MODIFIED", "DELETED"]:
        if self.after is None:
            return "DELETED"
        return "ADDED" if self.replaced is None else "MODIFIED"

    @property
    def before(self) -> Record | None:
        """Of something deleted the last state, at the version of the deletion."""
        return self.replaced if self.after else self.last

    @cached_property
    def last(self) -> Record | None:
        """The state that was replaced, at the version of this change: for whom it now is gone or out of sight."""
        return self.replaced.stamped(self.version) if self.replaced else None

    def once(self, what: Hashable, make: Callable[[], T]) -> T:
        """Made by the first follower who asks and given to all others, such as the line of a watch."""
        if what not in self._made:
            self._made[what] = make()
        return self._made[what]


class Stale(Exception):
    """The object is not at the version that the writer expected. `current` is what is there."""

    def __init__(self, key: Key, expected: int | None, current: Record | None) -> None:
        has = f"at version {current.version}" if current else "absent"
        wants = f"at version {expected}" if expected is not None else "absent"
        super().__init__(f"{key.resource} {key.namespace}/{key.name} is {has}, expected {wants}")
        self.current = current


class Forgotten(Exception):
    """What happened since a version is no longer known. `oldest` is the earliest that is."""

    def __init__(self, version: int, oldest: int) -> None:
        super().__init__(f"version {version} is forgotten, the oldest that is known is {oldest}")
        self.version = version
        self.oldest = oldest
