"""Who holds a node: the lock that HAMi takes from bind to allocation.

We take none ourselves, but honour one that HAMi's components hold. Its owner is the pod being bound; the
legacy form and Cambricon's own lock carry a time only.
"""

from collections.abc import Mapping
from datetime import datetime

import msgspec

from tessera.errors import InvalidAnnotation
from tessera.model.annotations import keys
from tessera.model.annotations.complaints import shorten
from tessera.model.annotations.limits import written_name
from tessera.model.annotations.times import find_time, rfc3339


class NodeLock(msgspec.Struct, frozen=True):
    """`namespace` and `pod` are empty in the old form, where nobody knows the owner."""

    at: datetime
    namespace: str = ""
    pod: str = ""


def decode_lock(text: str, where: str) -> NodeLock:
    parts = [part.strip() for part in text.split(",")]
    at = find_time(parts[0])
    if at is None or len(parts) not in (1, 3):
        raise InvalidAnnotation(
            f'{where} is "{shorten(text)}", '
            'expected time, namespace and pod such as "2026-08-21T10:00:05Z,default,train-0"'
        )
    return NodeLock(at, *parts[1:])


def read_locks(annotations: Mapping[str, str], where: str) -> dict[str, NodeLock]:
    """Every lock on a node by its key: HAMi's, Volcano's and Cambricon's."""
    return {
        key: decode_lock(annotations[key], f"{where}: {key}")
        for key in keys.NODE_LOCKS
        if annotations.get(key, "").strip()
    }


def encode_lock(lock: NodeLock) -> str:
    """With its owner where it has one, else in the old form."""
    if not lock.namespace and not lock.pod:
        return rfc3339(lock.at)
    names = (("namespace", lock.namespace), ("pod", lock.pod))
    return ",".join([rfc3339(lock.at), *(written_name(name, "node lock", what, ",") for what, name in names)])
