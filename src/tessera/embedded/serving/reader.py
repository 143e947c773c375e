"""Other objects, for those who decide about one: decoded once for each version, and not theirs to change."""

from collections.abc import Sequence

from tessera.embedded.documents import Frozen
from tessera.embedded.store import Key, Record, Store

MOST_KEPT = 1024
"""Namespaces, accounts, roles and registrations are asked for by every write; pods are not kept long."""


class StoreReader:
    def __init__(self, store: Store) -> None:
        self._store = store
        self._decoded: dict[Key, tuple[int, Frozen]] = {}

    def get(self, resource: str, namespace: str, name: str) -> Frozen | None:
        record = self._store.get(Key(resource, namespace, name))
        return self._read(record) if record else None

    def list(self, resource: str, namespace: str = "") -> Sequence[Frozen]:
        return [self._read(record) for record in self._store.list(resource, namespace)]

    def _read(self, record: Record) -> Frozen:
        version, document = self._decoded.get(record.key, (0, {}))
        if version == record.version:
            return document
        if len(self._decoded) >= MOST_KEPT:
            self._decoded.clear()
        document = record.document()
        self._decoded[record.key] = (record.version, document)
        return document
