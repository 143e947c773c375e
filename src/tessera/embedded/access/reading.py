"""What access reads: roles, bindings and accounts, as a store has them."""

from collections.abc import Sequence
from typing import Protocol

from tessera.embedded.documents import Document
from tessera.embedded.store import Key


class Stored(Protocol):
    @property
    def version(self) -> int: ...
    def document(self) -> Document: ...


class Reading(Protocol):
    @property
    def version(self) -> int:
        """Grows with every write, whatever is written."""
        ...

    def get(self, key: Key) -> Stored | None: ...
    def list(self, resource: str, namespace: str = "") -> Sequence[Stored]: ...
