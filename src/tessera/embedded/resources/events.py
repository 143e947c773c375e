"""Events have two forms, core/v1 and events.k8s.io/v1, and are one thing: it is stored in the first.

The newer form calls the same fields by other names. `to_core` and `from_core` translate; they undo each other.
"""

from tessera.embedded import causes
from tessera.embedded.documents import Document, Frozen
from tessera.embedded.refusals import Cause
from tessera.embedded.resources.parts import part_of, put_back, set_defaults
from tessera.embedded.resources.strategy import Strategy

CORE_VERSION = "v1"
NEW_VERSION = "events.k8s.io/v1"
TYPES = ("Normal", "Warning")
_OTHER_NAMES = {
    "involvedObject": "regarding",
    "message": "note",
    "source": "deprecatedSource",
    "firstTimestamp": "deprecatedFirstTimestamp",
    "lastTimestamp": "deprecatedLastTimestamp",
    "count": "deprecatedCount",
    "reportingComponent": "reportingController",
}
_CORE_NAMES = {new: core for core, new in _OTHER_NAMES.items()}
_FIXED = ("involvedObject", "reason", "reportingComponent", "reportingInstance", "action", "eventTime", "type")


def to_core(document: Document) -> Document:
    """An event of events.k8s.io as core/v1 writes it."""
    return {_CORE_NAMES.get(name, name): value for name, value in document.items()} | {"apiVersion": CORE_VERSION}


def from_core(document: Document) -> Document:
    """An event of core/v1 as events.k8s.io writes it."""
    return {_OTHER_NAMES.get(name, name): value for name, value in document.items()} | {"apiVersion": NEW_VERSION}


class Events(Strategy):
    """In the form of core/v1, whichever form they came in."""

    def default(self, document: Document) -> Document:
        part_of(document, "involvedObject")
        part_of(document, "source")
        for name in ("firstTimestamp", "lastTimestamp", "eventTime"):
            document.setdefault(name, None)
        set_defaults(document, reportingComponent="", reportingInstance="")
        return document

    def check(self, document: Frozen) -> list[Cause]:
        about, namespace = document["involvedObject"].get("namespace"), document["metadata"].get("namespace")
        if about and about != namespace:
            return [causes.invalid("involvedObject.namespace", about, "does not match event.namespace")]
        return []


class NewEvents(Events):
    """Those that come in the newer form must say more, and keep to it."""

    def check(self, document: Frozen) -> list[Cause]:
        found: list[Cause] = []
        if not document.get("eventTime"):
            found.append(causes.required("eventTime"))
        if document.get("type") not in TYPES:
            kind = document.get("type") or ""
            found.append(causes.invalid("type", kind, f"has invalid value: {kind}"))
        found += [causes.required(name) for name in ("reason", "action") if found == [] and not document.get(name)]
        return found + super().check(document)

    def check_change(self, new: Frozen, old: Frozen) -> list[Cause]:
        return [
            causes.immutable(_OTHER_NAMES.get(name, name), new.get(name))
            for name in _FIXED
            if new.get(name) != old.get(name)
        ]

    def prepare_update(self, new: Document, old: Frozen) -> Document:
        for name in ("firstTimestamp", "lastTimestamp", "count", "source"):
            if new.get(name) in (None, {}):
                put_back(new, old, name)
        return super().prepare_update(new, old)
