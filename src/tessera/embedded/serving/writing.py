"""Creating and replacing: from what somebody sent to what is stored.

defaults → mutating admission → what the server decides → managedFields → validation → validating admission → store

A replacement is made against one version. If another write was faster it is made again on what is there now, unless the
client said which version it means.
"""

import uuid
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from random import Random
from typing import NamedTuple

from tessera.embedded.admitting import Admission, Request
from tessera.embedded.admitting.quotas import QUOTAS, Charge
from tessera.embedded.documents import Document, Frozen
from tessera.embedded.ownership import Write, note_update
from tessera.embedded.refusals import Cause, already_exists, conflict, forbidden, invalid, not_found
from tessera.embedded.resources import Served, metadata
from tessera.embedded.resources.deleting import is_held
from tessera.embedded.schemas import Schema
from tessera.embedded.serving.emptiness import without_empty
from tessera.embedded.serving.envelopes import as_stored, encode, opened
from tessera.embedded.serving.requests import Asked
from tessera.embedded.serving.sameness import drop_empty, says_the_same
from tessera.embedded.store import Key, Record, Stale, Store

NOT_THERE = "uid mismatch: there is no object, and the one that is provided has the uid of another"
MODIFIED = "the object has been modified; please apply your changes to the latest version and try again"
TRIES = 8
"""Of a write that others overtook, and of a generated name that is taken."""
_LETTERS = "bcdfghjklmnpqrstvwxz2456789"
"""Without vowels no generated name becomes a word."""

Change = Callable[[Document], Document]
"""From an object as it is, its maker's own, to what it shall be."""
Apply = Callable[[Document | None, Write], Document]
"""From an object as it is, or none, to what it shall be, with its managedFields."""
Note = Callable[[Document | None, Document, Write, Schema], Document]
"""Writes who owns which field, of what was before and what is after."""
Completion = Callable[[Document], None]
"""Gives a new object what only the server can, such as the address of a Service."""
NO_COMPLETIONS: Mapping[str, Completion] = {}


class Written(NamedTuple):
    """`is_gone` says that the write took away the last that held a deletion up."""

    record: Record
    is_new: bool = False
    is_gone: bool = False


class Writer:
    def __init__(
        self, store: Store, admission: Admission, completions: Mapping[str, Completion] = NO_COMPLETIONS
    ) -> None:
        self._store = store
        self._admission = admission
        self._completions = completions
        self._chance = Random()

    def read(self, asked: Asked) -> Record:
        record = self._store.get(key_of(asked))
        if record is None:
            raise not_found(asked.served.kind, asked.target.name)
        return record

    async def create(self, asked: Asked, document: Document, note: Note = note_update) -> Written:
        """`document` is vetted and agrees with its path."""
        meta: Document = document["metadata"]
        if asked.served.is_going:
            why = "create not allowed while custom resource definition is terminating"
            raise forbidden(asked.served.kind, meta.get("name", ""), why)
        for _ in range(TRIES):
            try:
                return await self._create(asked, {**document, "metadata": dict(meta)}, note)
            except Stale:
                if meta.get("name"):
                    break
        raise already_exists(asked.served.kind, meta.get("name") or meta["generateName"])

    async def _create(self, asked: Asked, document: Document, note: Note) -> Written:
        served, strategy, at = asked.served, asked.served.strategy, now()
        document = self._begun(asked, _translated(served, document), at)
        name: str = document["metadata"].get("name", "")
        document = _defaulted(served, await self._mutated(asked, "CREATE", name, document, None))
        document = strategy.prepare_create(document, at)
        if served.resource in self._completions:
            self._completions[served.resource](document)
        if served.schema and not served.to_stored:
            document = note(None, document, _write(asked, at), served.schema)
        drop_empty(document["metadata"])
        _refuse(asked, name, strategy.validate(document))
        await self._validated(asked, "CREATE", name, document, None)
        charges = self._admission.charges(admission_request(asked, "CREATE", name, document, None))
        return Written(await self._put(asked, name, document, None, charges), is_new=True)

    def _begun(self, asked: Asked, document: Document, at: str) -> Document:
        suffix = "".join(self._chance.choices(_LETTERS, k=metadata.SUFFIX_LENGTH))
        uid, namespace = new_uid(), asked.target.namespace
        begun = metadata.begin(document, namespace=namespace, now=at, uid=uid, suffix=suffix)
        return _defaulted(asked.served, begun)

    async def change(self, asked: Asked, make: Change, note: Note = note_update) -> Written:
        """Make what is there into what `make` says, and again if somebody else was faster.

        Whoever says a version in it is refused the second time, because it is no longer that one.
        """
        for _ in range(TRIES):
            record = self.read(asked)
            try:
                return await self._replace(asked, record, make(as_asked(asked.served, record)), note)
            except Stale:
                continue
        raise conflict(asked.served.kind, asked.target.name, MODIFIED)

    async def apply(self, asked: Asked, merged: Apply) -> Written:
        """Create it or change it; what was merged knows its owners already."""
        write = _write(asked, now())
        if self._store.get(key_of(asked)) is None and not asked.target.subresource:
            document = merged(None, write)
            if uid := document["metadata"].get("uid"):
                raise conflict(asked.served.kind, asked.target.name, f"{NOT_THERE}: {uid}")
            return await self.create(asked, document, _as_noted)
        return await self.change(asked, lambda live: merged(live, write), _as_noted)

    async def _replace(self, asked: Asked, record: Record, new: Document, note: Note) -> Written:
        served, strategy, at, name = asked.served, asked.served.strategy, now(), asked.target.name
        old = opened(served.kind, record)
        check_preconditions(asked, new["metadata"], old)
        new = _defaulted(served, metadata.keep_identity(_translated(served, new), old))
        new = _defaulted(served, await self._mutated(asked, "UPDATE", name, new, old))
        is_status = asked.target.subresource == "status"
        new = strategy.prepare_status(new, old) if is_status else strategy.prepare_update(new, old)
        if served.schema and not served.to_stored:
            new = note(old, new, _write(asked, at), served.schema)
        drop_empty(new["metadata"])
        check = strategy.validate_status if is_status else strategy.validate_update
        _refuse(asked, name, check(new, old))
        await self._validated(asked, "UPDATE", name, new, old)
        if says_the_same(new, old):
            return Written(record)
        if is_released(new):
            return Written(await self._let_go(asked, record, new), is_gone=True)
        charges = self._admission.charges(admission_request(asked, "UPDATE", name, new, old))
        return Written(await self._put(asked, name, new, record.version, charges))

    async def amend(self, asked: Asked, make: Change) -> Record:
        """A change that the server itself makes of what somebody asked for, such as the node of a Binding."""
        while True:
            record = self.read(asked)
            new = make(opened(asked.served.kind, record))
            try:
                if is_released(new):
                    return await self._let_go(asked, record, new)
                return await self._put(asked, asked.target.name, new, record.version)
            except Stale:
                continue

    async def _mutated(
        self, asked: Asked, operation: str, name: str, document: Document, old: Document | None
    ) -> Document:
        admitted = await self._admission.mutate(admission_request(asked, operation, name, document, old))
        asked.warnings += admitted.warnings
        return admitted.object

    async def _validated(
        self, asked: Asked, operation: str, name: str, document: Document, old: Document | None
    ) -> None:
        asked.warnings += await self._admission.validate(admission_request(asked, operation, name, document, old))

    async def _put(
        self, asked: Asked, name: str, document: Document, expected: int | None, charges: Sequence[Charge] = ()
    ) -> Record:
        """What quotas are to say is stored in the same breath."""
        key = Key(asked.served.resource, asked.target.namespace, name)
        if not asked.options.dry_run:
            record = self._store.put(key, as_stored(document), expected=expected)
            for charge in charges:
                meta = charge.quota["metadata"]
                quota = Key(QUOTAS, meta["namespace"], meta["name"])
                self._store.put(quota, charge.quota, expected=int(meta["resourceVersion"]))
            await self._store.settled()
            return record
        current = self._store.get(key)
        if (current.version if current else None) != expected:
            raise Stale(key, expected, current)
        return Record(key, expected or 0, encode(as_stored(document)))

    async def _let_go(self, asked: Asked, record: Record, new: Document) -> Record:
        """The last that held a deletion up is gone."""
        if not asked.options.dry_run:
            self._store.delete(record.key, expected=record.version)
            await self._store.settled()
        return record._replace(body=encode(as_stored(new)))


def admission_request(
    asked: Asked, operation: str, name: str, document: Document | None, old: Document | None
) -> Request:
    return Request(
        operation=operation,
        kind=asked.served.kind,
        subresource=asked.target.subresource,
        namespace=asked.target.namespace,
        name=name,
        user=asked.user,
        object=document,
        old_object=old,
        dry_run=asked.options.dry_run,
        uid=new_uid(),
    )


def check_preconditions(asked: Asked, said: Frozen, old: Frozen) -> None:
    """Whoever says a version or a uid means that one and no other."""
    kind, name = asked.served.kind, asked.target.name
    uid, known = said.get("uid"), old["metadata"]["uid"]
    if uid and uid != known:
        raise conflict(kind, name, f"Precondition failed: UID in precondition: {uid}, UID in object meta: {known}")
    version = said.get("resourceVersion")
    if version and version != old["metadata"]["resourceVersion"]:
        raise conflict(kind, name, MODIFIED)


def as_asked(served: Served, record: Record) -> Document:
    """In the form of the kind by which it was asked for, the caller's own."""
    document = opened(served.kind, record)
    return served.from_stored(document) if served.from_stored else document


def _defaulted(served: Served, document: Document) -> Document:
    """By its schema first, where what is null or empty goes, then as its kind does it."""
    if served.schema and not served.is_custom and not served.to_stored:
        document = without_empty(served.schema, served.schema.defaulted(document))
    return served.strategy.default(document)


def _translated(served: Served, document: Document) -> Document:
    return served.to_stored(document) if served.to_stored else document


def key_of(asked: Asked) -> Key:
    return Key(asked.served.resource, asked.target.namespace, asked.target.name)


def is_released(document: Frozen) -> bool:
    """Whether nothing holds up a deletion that was asked for."""
    if not document["metadata"].get("deletionTimestamp") or is_held(document):
        return False
    return document["kind"] != "Namespace" or not document["spec"].get("finalizers")


def _refuse(asked: Asked, name: str, causes: list[Cause]) -> None:
    if causes:
        raise invalid(asked.served.kind, name, causes)


def _as_noted(_: Document | None, after: Document, __: Write, ___: Schema) -> Document:
    """An apply has written who owns what."""
    return after


def _write(asked: Asked, at: str) -> Write:
    return Write(asked.manager, asked.served.kind.api_version, at, asked.target.subresource)


def new_uid() -> str:
    return str(uuid.uuid4())


def now() -> str:
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
