"""One request as admission sees it: who wants to do what to which object, and what was there before."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple, Protocol

import msgspec

from tessera.embedded.documents import Document, Frozen
from tessera.embedded.kinds import Kind


class Asker(Protocol):
    """Who asks."""

    @property
    def name(self) -> str: ...
    @property
    def uid(self) -> str: ...
    @property
    def groups(self) -> Sequence[str]: ...
    @property
    def extra(self) -> Mapping[str, Sequence[str]]: ...


class Request(msgspec.Struct, kw_only=True):
    """`operation` is CREATE, UPDATE or DELETE. A deletion has no `object`, a creation no `old_object`."""

    operation: str
    kind: Kind
    subresource: str = ""
    namespace: str = ""
    name: str = ""
    user: Asker
    object: Document | None = None
    old_object: Document | None = None
    dry_run: bool = False
    options: Frozen = {}
    uid: str = ""

    def creates(self, resource: str) -> bool:
        """Whether a whole object of this resource is made."""
        return self.operation == "CREATE" and not self.subresource and self.kind.resource == resource

    def document(self) -> Frozen:
        """The object as it would be, or as it was when it goes."""
        return self.object or self.old_object or {}


class Admitted(NamedTuple):
    """The object as it is to be stored, and what its maker should know."""

    object: Document
    warnings: Sequence[str] = ()


class Reader(Protocol):
    """Other objects. Whoever reads one does not change it, so it need not be decoded anew each time."""

    def get(self, resource: str, namespace: str, name: str) -> Frozen | None: ...

    def list(self, resource: str, namespace: str = "") -> Sequence[Frozen]:
        """By name; of all namespaces where none is said."""
        ...
