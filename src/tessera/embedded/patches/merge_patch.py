"""Merge patch (RFC 7386): objects are merged, null deletes, anything else replaces what was there."""

from typing import Any, cast

from tessera.embedded.documents import Document, copied


def merge_patch(document: Any, patch: Any) -> Any:
    """A document of its own; what was given stays as it is."""
    return _merge(copied(document), copied(patch))


def _merge(merged: Any, patch: Any) -> Any:
    if not isinstance(patch, dict):
        return patch
    target: Document = cast("Document", merged) if isinstance(merged, dict) else {}
    for key, value in cast("Document", patch).items():
        if value is None:
            target.pop(key, None)
        else:
            target[key] = _merge(target.get(key), value)
    return target
