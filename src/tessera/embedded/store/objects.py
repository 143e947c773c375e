"""What there is now, in memory: found by key, listed in order without sorting."""

from bisect import bisect_left, insort
from collections import defaultdict
from collections.abc import Sequence

from tessera.embedded.store.records import Key, Record

_AFTER_ANY_NAME = "\0"
"""What a namespace with this behind it would hold comes after all that the namespace holds, and before the next."""


class Objects:
    def __init__(self) -> None:
        self._records: dict[Key, Record] = {}
        self._sorted: defaultdict[str, list[Key]] = defaultdict(list)

    def __len__(self) -> int:
        return len(self._records)

    def get(self, key: Key) -> Record | None:
        return self._records.get(key)

    def put(self, record: Record) -> None:
        if record.key not in self._records:
            insort(self._sorted[record.key.resource], record.key)
        self._records[record.key] = record

    def remove(self, key: Key) -> None:
        """Absent is fine."""
        if self._records.pop(key, None):
            keys = self._sorted[key.resource]
            del keys[bisect_left(keys, key)]

    def restore(self, key: Key, record: Record | None) -> None:
        """Make it as it was: this record, or absent."""
        if record:
            self.put(record)
        else:
            self.remove(key)

    def list(self, resource: str, namespace: str) -> Sequence[Record]:
        """By namespace and name; an empty namespace means all."""
        keys = self._sorted.get(resource, [])
        if namespace:
            first = bisect_left(keys, Key(resource, namespace, ""))
            keys = keys[first : bisect_left(keys, Key(resource, namespace + _AFTER_ANY_NAME, ""))]
        return [self._records[key] for key in keys]
