"""One rule of a role against one request."""

from typing import Any

import msgspec

from tessera.embedded.access.users import User
from tessera.embedded.documents import Document, Frozen

EVERY = "*"


class Attributes(msgspec.Struct, frozen=True, kw_only=True):
    """What somebody wants to do. With a `path` it is about that path alone, and not about a resource."""

    user: User
    verb: str
    group: str = ""
    resource: str = ""
    subresource: str = ""
    namespace: str = ""
    name: str = ""
    path: str = ""


class Rule:
    """Read once, asked often."""

    __slots__ = ("_groups", "_names", "_resources", "_urls", "_verbs", "raw")

    def __init__(self, raw: Frozen) -> None:
        self.raw = raw
        self._verbs = _words(raw.get("verbs"))
        self._groups = _words(raw.get("apiGroups"))
        self._resources = _words(raw.get("resources"))
        self._names = _words(raw.get("resourceNames"))
        self._urls = _words(raw.get("nonResourceURLs"))

    def grants(self, wanted: Attributes) -> bool:
        if wanted.verb not in self._verbs and EVERY not in self._verbs:
            return False
        return self._covers_path(wanted.path) if wanted.path else self._covers(wanted)

    def told(self) -> Document:
        """As a review of one's rules shows it."""
        return {field: list(words) for field, words in self.raw.items() if words}

    @property
    def is_about_paths(self) -> bool:
        return bool(self._urls)

    def _covers(self, wanted: Attributes) -> bool:
        if wanted.group not in self._groups and EVERY not in self._groups:
            return False
        if self._names and wanted.name not in self._names:
            return False
        if EVERY in self._resources:
            return True
        if not wanted.subresource:
            return wanted.resource in self._resources
        door = f"{wanted.resource}/{wanted.subresource}"
        return door in self._resources or f"{EVERY}/{wanted.subresource}" in self._resources

    def _covers_path(self, path: str) -> bool:
        if path in self._urls or EVERY in self._urls:
            return True
        return any(url.endswith(EVERY) and path.startswith(url.rstrip(EVERY)) for url in self._urls)


def _words(listed: Any) -> frozenset[str]:
    return frozenset(listed or ())
