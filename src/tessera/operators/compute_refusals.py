"""Why the pod of a Compute was not even made, read from what the StatefulSet's controller says of it. Pure.

The controller tries again by itself, later each time. What it said before the last change of the StatefulSet is not
about what is wanted now; its times have seconds only, so what was said in the second of the change does not count.
Of its verbs some versions write the first letter large and some small.
"""

import re
from collections.abc import Iterable, Mapping
from datetime import datetime

import msgspec

from tessera.errors import InvalidQuantity
from tessera.kube.kinds import EVENTS, Selection
from tessera.kube.objects import Document, ObjectMeta
from tessera.model.quantities import parse_quantity
from tessera.operators.compute_objects import MANAGER
from tessera.operators.compute_pods import Trouble

OF_STATEFUL_SETS = Selection(fields="involvedObject.kind=StatefulSet")
MADE, NOT_MADE = "SuccessfulCreate", "FailedCreate"
_PREFIX = re.compile(r"[Cc]reate Pod \S+ in StatefulSet \S+ failed error: ")
_LIMITED = re.compile(r"(maximum|minimum) \S+ usage per|limit to request ratio per")
_DENIED = re.compile(r"denied (the )?request|violates PodSecurity")
_RESTRICTED = 'violates PodSecurity "restricted:'
_AMOUNTS = re.compile(r"requested: (?P<requested>.*?), used: .*?, limited: (?P<limited>.*)")


class InvolvedObject(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    kind: str = ""
    name: str = ""
    uid: str = ""


class Event(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """The older and the newer form tell the last time differently."""

    metadata: ObjectMeta
    involved_object: InvolvedObject = InvolvedObject()
    reason: str = ""
    message: str = ""
    last_timestamp: datetime | None = None
    event_time: datetime | None = None

    @property
    def at(self) -> datetime | None:
        return self.last_timestamp or self.event_time


TOLD = EVENTS.decoded_as(Event)


def find_refusal(stateful_set: Document, events: Iterable[Event]) -> Trouble | None:
    """What became of the last try to make a pod of this StatefulSet as it is now."""
    since = _changed_at(stateful_set)
    tries = [event for event in events if event.reason in (MADE, NOT_MADE) and event.at]
    last = max(tries, key=lambda event: (event.at, int(event.metadata.resource_version or 0)), default=None)
    if last is None or last.reason == MADE or (since and last.at and last.at <= since):
        return None
    return read_refusal(_PREFIX.sub("", last.message))


def wants_confinement(refusal: Trouble) -> bool:
    """Whether the namespace takes only pods that ask for the fewest rights there are."""
    return _RESTRICTED in refusal.message


def read_refusal(words: str) -> Trouble:
    if "exceeded quota" in words:
        return Trouble("QuotaExceeded", words, is_final=_exceeds_by_itself(words))
    if "failed quota" in words:
        return Trouble("QuotaExceeded", words, is_final=True)
    if _LIMITED.search(words):
        return Trouble("LimitRangeExceeded", words, is_final=True)
    if _DENIED.search(words):  # for a quota that a webhook keeps there may be room later
        return Trouble("AdmissionDenied", words, is_final="quota" not in words)
    if " is invalid: " in words:
        return Trouble("PodInvalid", words, is_final=True)
    return Trouble("PodNotMade", words)


def _exceeds_by_itself(words: str) -> bool:
    """Whether the quota would be too small even if nobody else used any of it."""
    told = _AMOUNTS.search(words)
    if told is None:
        return False
    requested, limited = _read_amounts(told["requested"]), _read_amounts(told["limited"])
    try:
        return any(parse_quantity(amount) > parse_quantity(limited[name]) for name, amount in requested.items())
    except (InvalidQuantity, KeyError):
        return False


def _read_amounts(text: str) -> Mapping[str, str]:
    named = (pair.partition("=") for pair in text.split(","))
    return {name.strip(): amount for name, _, amount in named}


def _changed_at(stateful_set: Document) -> datetime | None:
    """When we last changed it."""
    entries: list[Document] = stateful_set["metadata"].get("managedFields") or []
    ours = (one for one in entries if one.get("manager") == MANAGER and not one.get("subresource"))
    told = next((one.get("time") for one in ours), None)
    return datetime.fromisoformat(told) if told else None
