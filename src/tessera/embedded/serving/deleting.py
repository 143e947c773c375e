"""Deleting: at once where nothing holds the object, otherwise it is marked and waits for whoever holds it.

What waits is let go by the write that takes the last finalizer off (`writing`). Collecting what an owner leaves behind
and emptying a namespace or a definition are the work of controllers; here they are only made to happen, by finalizers.
"""

from typing import NamedTuple

import msgspec

from tessera.embedded.admitting import Admission
from tessera.embedded.documents import Document, Frozen
from tessera.embedded.refusals import conflict, not_found
from tessera.embedded.resources.deleting import mark_deleted
from tessera.embedded.serving.bodies import decode_optional
from tessera.embedded.serving.envelopes import as_stored, encode, opened
from tessera.embedded.serving.requests import Asked
from tessera.embedded.serving.writing import admission_request, is_released, key_of, now
from tessera.embedded.store import Record, Stale, Store

_HOLDERS = {"Foreground": "foregroundDeletion", "Orphan": "orphan"}
"""What a policy leaves on the object for the collector to take off."""


class Wish(NamedTuple):
    """How something is to be deleted, from the body and the query together."""

    options: Frozen
    policy: str

    @classmethod
    def of(cls, asked: Asked) -> "Wish":
        options = decode_optional(asked.body, asked.content_type)
        grace_s = asked.options.grace_s
        if grace_s is not None:
            options.setdefault("gracePeriodSeconds", grace_s)
        orphans = options.get("orphanDependents", asked.options.orphans)
        if options.get("dryRun"):
            asked.options = msgspec.structs.replace(asked.options, dry_run=True)
        by_flag = "" if orphans is None else "Orphan" if orphans else "Background"
        return cls(options, options.get("propagationPolicy") or asked.options.propagation_policy or by_flag)


class Deleted(NamedTuple):
    """`is_gone` says that nothing of it is left."""

    record: Record
    is_gone: bool


class Deleter:
    def __init__(self, store: Store, admission: Admission) -> None:
        self._store = store
        self._admission = admission

    async def delete(self, asked: Asked, wish: Wish) -> Deleted:
        """Again on what is there then, if somebody else wrote in between."""
        while True:
            record = self._store.get(key_of(asked))
            if record is None:
                raise not_found(asked.served.kind, asked.target.name)
            try:
                return await self._delete(asked, wish, record)
            except Stale:
                continue

    async def _delete(self, asked: Asked, wish: Wish, record: Record) -> Deleted:
        old = opened(asked.served.kind, record)
        _check_preconditions(asked, wish.options.get("preconditions") or {}, old["metadata"])
        request = admission_request(asked, "DELETE", asked.target.name, None, old)
        asked.warnings += await self._admission.validate(request)
        going = _marked(asked, opened(asked.served.kind, record), wish)
        if is_released(going):
            return Deleted(await self._remove(asked, record, going), is_gone=True)
        if going == old:
            return Deleted(record, is_gone=False)
        if asked.options.dry_run:
            return Deleted(record._replace(body=encode(as_stored(going))), is_gone=False)
        marked = self._store.put(record.key, as_stored(going), expected=record.version)
        await self._store.settled()
        return Deleted(marked, is_gone=False)

    async def _remove(self, asked: Asked, record: Record, going: Document) -> Record:
        if not asked.options.dry_run:
            self._store.delete(record.key, expected=record.version)
            await self._store.settled()
        return record._replace(body=encode(as_stored(going)))


def _marked(asked: Asked, document: Document, wish: Wish) -> Document:
    """As it is while it goes. A second deletion can make it sooner and never later."""
    strategy, at, meta = asked.served.strategy, now(), document["metadata"]
    if not meta.get("deletionTimestamp"):
        _add_holder(meta, wish.policy)
        document = strategy.begin_deletion(document, at)
    return mark_deleted(document, strategy.grace_s(document, wish.options), at)


def _add_holder(meta: Document, policy: str) -> None:
    holder = _HOLDERS.get(policy)
    others = [one for one in meta.get("finalizers") or () if one not in _HOLDERS.values()]
    finalizers = [*others, holder] if holder else others
    if finalizers:
        meta["finalizers"] = finalizers
    else:
        meta.pop("finalizers", None)


def _check_preconditions(asked: Asked, wanted: Frozen, meta: Frozen) -> None:
    for field, word in (("uid", "UID"), ("resourceVersion", "ResourceVersion")):
        if wanted.get(field) and wanted[field] != meta[field]:
            why = (
                f"the {word} in the precondition ({wanted[field]}) does not match the {word} in record ({meta[field]})."
                " The object might have been deleted and then recreated"
            )
            raise conflict(asked.served.kind, asked.target.name, why)


def success(asked: Asked, meta: Frozen) -> Document:
    """What is said of something that is gone."""
    kind = asked.served.kind
    details = {"name": meta["name"], "group": kind.group, "kind": kind.plural, "uid": meta["uid"]}
    told = {field: value for field, value in details.items() if value}
    return {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "details": told}
