"""Label and field selectors: what was written, and whether an object is meant by it."""

import re
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from typing import Any, NamedTuple, cast

import msgspec

from tessera.embedded.documents import Frozen
from tessera.embedded.kinds import Kind
from tessera.embedded.refusals import bad_request
from tessera.embedded.store import Record

_PART = r"[A-Za-z0-9](?:[-A-Za-z0-9_.]*[A-Za-z0-9])?"
_KEY = rf"(?:{_PART}/)?{_PART}"
_IN_SET = re.compile(rf"\s*({_KEY})\s+(in|notin)\s+\(([^()]*)\)\s*")
_EXISTS = re.compile(rf"\s*(!?)\s*({_KEY})\s*")
_EQUALS = re.compile(rf"\s*({_KEY})\s*(==|=|!=)\s*((?:{_PART})?)\s*")
_COMMA_OUTSIDE = re.compile(r",(?![^()]*\))")
_FIELD = re.compile(r"([^=!]+?)(==|=|!=)(.*)")
_FALSE_WHERE_ABSENT = frozenset({("spec", "hostNetwork"), ("spec", "unschedulable")})

FIELDS: Mapping[str, Sequence[str]] = {
    "pods": (
        "spec.hostNetwork",
        "spec.nodeName",
        "spec.restartPolicy",
        "spec.schedulerName",
        "spec.serviceAccountName",
        "status.nominatedNodeName",
        "status.phase",
        "status.podIP",
    ),
    "events": (
        "involvedObject.apiVersion",
        "involvedObject.fieldPath",
        "involvedObject.kind",
        "involvedObject.name",
        "involvedObject.namespace",
        "involvedObject.resourceVersion",
        "involvedObject.uid",
        "reason",
        "reportingComponent",
        "source.component",
        "type",
    ),
    "jobs.batch": ("status.successful",),
    "namespaces": ("status.phase",),
    "nodes": ("spec.unschedulable",),
    "replicasets.apps": ("status.replicas",),
    "secrets": ("type",),
}
"""What can be selected beside metadata.name and metadata.namespace, by resource."""


class Labels(NamedTuple):
    """All must hold. Each is a key, whether its value is to be among `values`, and those; None: any value."""

    terms: tuple[tuple[str, bool, frozenset[str] | None], ...]

    def match(self, labels: Mapping[str, str]) -> bool:
        return all(_holds(labels.get(key), wanted, values) for key, wanted, values in self.terms)


class Fields(NamedTuple):
    """All must hold: a path, whether it is to be equal, and the value."""

    terms: tuple[tuple[tuple[str, ...], bool, str], ...]

    def match(self, document: Frozen) -> bool:
        return all((_text_at(document, path) == value) is wanted for path, wanted, value in self.terms)


class Selection(NamedTuple):
    """Both selectors of a request."""

    labels: Labels
    fields: Fields

    def match(self, document: Frozen) -> bool:
        return self.fields.match(document) and self.labels.match(document["metadata"].get("labels") or {})

    def match_record(self, record: Record) -> bool:
        """Decodes no more of the object than is asked about."""
        by_key, by_field = _split(self.fields)
        if not all((_KEYS[path](record) == value) is wanted for path, wanted, value in by_key.terms):
            return False
        if by_field.terms:
            return self.match(record.document())
        return not self.labels.terms or self.labels.match(_Labelled.of(record).metadata.labels or {})


class _Metadata(msgspec.Struct):
    labels: dict[str, str] | None = None


class _Labelled(msgspec.Struct):
    metadata: _Metadata

    @classmethod
    def of(cls, record: Record) -> "_Labelled":
        return _decode_labels(record.body)


_decode_labels = msgspec.json.Decoder(_Labelled).decode
_KEYS: Mapping[tuple[str, ...], Callable[[Record], str]] = {
    ("metadata", "name"): lambda record: record.key.name,
    ("metadata", "namespace"): lambda record: record.key.namespace,
}


@lru_cache(maxsize=256)
def _split(fields: Fields) -> tuple[Fields, Fields]:
    """What a key can tell, and what only the object can."""
    by_key = tuple(term for term in fields.terms if term[0] in _KEYS)
    return Fields(by_key), Fields(tuple(term for term in fields.terms if term[0] not in _KEYS))


@lru_cache(maxsize=256)
def read_selection(kind: Kind, labels: str, fields: str) -> Selection | None:
    """None, if nothing is selected: everything is meant."""
    return Selection(read_labels(labels), read_fields(kind, fields)) if labels or fields else None


def read_labels(text: str) -> Labels:
    return Labels(tuple(_read_label(part) for part in _COMMA_OUTSIDE.split(text)) if text.strip() else ())


def _read_label(text: str) -> tuple[str, bool, frozenset[str] | None]:
    if match := _EQUALS.fullmatch(text):
        return match[1], match[2] != "!=", frozenset((match[3],))
    if match := _IN_SET.fullmatch(text):
        return match[1], match[2] == "in", frozenset(value.strip() for value in match[3].split(","))
    if match := _EXISTS.fullmatch(text):
        return match[2], not match[1], None
    raise bad_request(f'unable to parse requirement: "{text}" is no label selector')


def read_fields(kind: Kind, text: str) -> Fields:
    return Fields(tuple(_read_field(kind, part) for part in text.split(",") if part.strip()))


def _read_field(kind: Kind, text: str) -> tuple[tuple[str, ...], bool, str]:
    match = _FIELD.fullmatch(text.strip())
    if match is None:
        raise bad_request(f'invalid selector: "{text}"; can\'t understand it, expected field=value or field!=value')
    path = "source.component" if (kind.plural, match[1]) == ("events", "source") else match[1]
    if path not in ("metadata.name", "metadata.namespace", *FIELDS.get(kind.resource, ())):
        raise bad_request(f"field label not supported: {path}")
    return tuple(path.split(".")), match[2] != "!=", match[3]


def _holds(value: str | None, wanted: bool, values: frozenset[str] | None) -> bool:
    if values is None:
        return (value is not None) is wanted
    return (value in values) is wanted


def _text_at(document: Frozen, path: tuple[str, ...]) -> str:
    value: Any = document
    for step in path:
        value = cast("Frozen", value).get(step) if isinstance(value, Mapping) else None
    if isinstance(value, bool) or path in _FALSE_WHERE_ABSENT:
        return "true" if value else "false"
    return "" if value is None else str(value)
