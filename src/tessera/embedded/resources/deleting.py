"""How a deletion begins: the time by which the object should be gone, and whether anything still holds it.

Whoever runs an object has its grace period to stop it. A second deletion can shorten the time and never lengthen it.
"""

import datetime

from tessera.embedded.documents import Document, Frozen

_FORMAT = "%Y-%m-%dT%H:%M:%SZ"


def is_held(document: Frozen) -> bool:
    """Whether it stays for now: somebody has a finalizer on it, or a grace period runs."""
    metadata = document["metadata"]
    return bool(metadata.get("finalizers")) or metadata.get("deletionGracePeriodSeconds", 0) > 0


def mark_deleted(document: Document, grace_s: int | None, now: str) -> Document:
    """Say that the object is going; `grace_s` is what its strategy gives. A document of one's own, changed in place."""
    metadata: Document = document["metadata"]
    granted = grace_s or 0
    if metadata.get("deletionTimestamp"):
        if granted >= metadata.get("deletionGracePeriodSeconds", 0):
            return document
    elif metadata.get("generation"):
        metadata["generation"] += 1
    metadata["deletionTimestamp"] = _later(now, granted)
    metadata["deletionGracePeriodSeconds"] = granted
    return document


def _later(now: str, seconds: int) -> str:
    then = datetime.datetime.strptime(now, _FORMAT) + datetime.timedelta(seconds=seconds)
    return then.strftime(_FORMAT)
