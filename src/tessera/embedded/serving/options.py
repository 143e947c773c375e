"""What a query asks for beside the path, checked once and typed."""

from collections.abc import Callable
from functools import lru_cache
from typing import Any
from urllib.parse import parse_qsl

import msgspec

from tessera.embedded.refusals import bad_request

_TRUE = frozenset({"true", "1", "True", "t", "T", "TRUE", ""})


class Options(msgspec.Struct, frozen=True, kw_only=True):
    """An empty string and None say that nothing was asked. `raw` is for what a subresource reads by itself."""

    label_selector: str = ""
    field_selector: str = ""
    limit: int = 0
    continue_: str = ""
    resource_version: str = ""
    resource_version_match: str = ""
    watch: bool = False
    timeout_s: float | None = None
    allow_bookmarks: bool = False
    send_initial_events: bool | None = None
    dry_run: bool = False
    field_manager: str = ""
    field_validation: str = ""
    force: bool = False
    propagation_policy: str = ""
    orphans: bool | None = None
    grace_s: int | None = None
    pretty: bool = False
    include_object: str = "Metadata"
    raw: tuple[tuple[str, str], ...] = ()


NONE = Options()


def read_options(query: bytes) -> Options:
    return _read(query) if query else NONE


@lru_cache(maxsize=256)
def _read(query: bytes) -> Options:
    """Clients ask the same over and over."""
    pairs = parse_qsl(query.decode("latin-1"), keep_blank_values=True)
    fields: dict[str, Any] = {}
    for name, value in pairs:
        if name in _READERS:
            field, read = _READERS[name]
            fields[field] = read(name, value)
    return Options(**fields, raw=tuple(pairs))


def _text(_: str, value: str) -> str:
    return value


def _flag(_: str, value: str) -> bool:
    return value in _TRUE


def _number(name: str, value: str) -> int:
    try:
        return int(value or 0)
    except ValueError:
        raise bad_request(f'{name} is "{value}", expected a whole number') from None


def _seconds(name: str, value: str) -> float | None:
    return float(_number(name, value)) or None


def _grace(name: str, value: str) -> int | None:
    return _number(name, value) if value else None


def _one_of(*allowed: str) -> Callable[[str, str], str]:
    def read(name: str, value: str) -> str:
        if value and value not in allowed:
            raise bad_request(f'{name} is "{value}", expected {", ".join(allowed[:-1])} or {allowed[-1]}')
        return value

    return read


def _dry_run(name: str, value: str) -> bool:
    if value not in ("", "All"):
        raise bad_request(f'{name} is "{value}", expected All')
    return value == "All"


_READERS: dict[str, tuple[str, Callable[[str, str], Any]]] = {
    "labelSelector": ("label_selector", _text),
    "fieldSelector": ("field_selector", _text),
    "limit": ("limit", _number),
    "continue": ("continue_", _text),
    "resourceVersion": ("resource_version", _text),
    "resourceVersionMatch": ("resource_version_match", _one_of("Exact", "NotOlderThan")),
    "watch": ("watch", _flag),
    "timeoutSeconds": ("timeout_s", _seconds),
    "allowWatchBookmarks": ("allow_bookmarks", _flag),
    "sendInitialEvents": ("send_initial_events", _flag),
    "dryRun": ("dry_run", _dry_run),
    "fieldManager": ("field_manager", _text),
    "fieldValidation": ("field_validation", _one_of("Ignore", "Warn", "Strict")),
    "force": ("force", _flag),
    "propagationPolicy": ("propagation_policy", _one_of("Orphan", "Background", "Foreground")),
    "orphanDependents": ("orphans", _flag),
    "gracePeriodSeconds": ("grace_s", _grace),
    "pretty": ("pretty", _flag),
    "includeObject": ("include_object", _one_of("None", "Metadata", "Object")),
}
