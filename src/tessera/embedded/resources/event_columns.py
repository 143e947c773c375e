"""What is shown of an event: when it was last seen and first, how often, and who says so of what."""

from datetime import datetime

from tessera.embedded.documents import Frozen
from tessera.embedded.resources.columns import UNKNOWN, Column, since, text
from tessera.embedded.resources.parts import inside


def _first_seen(event: Frozen, now: datetime) -> str:
    return since(event.get("firstTimestamp") or event.get("eventTime"), now)


def _last_seen(event: Frozen, now: datetime) -> str:
    series = inside(event, "series")
    seen = series.get("lastObservedTime") or event.get("lastTimestamp") or event.get("eventTime")
    return since(seen, now) if seen else UNKNOWN


def _count(event: Frozen) -> int:
    return inside(event, "series").get("count") or event.get("count") or (1 if event.get("eventTime") else 0)


def _object(event: Frozen) -> str:
    about = inside(event, "involvedObject")
    return f"{about.get('kind', '').lower()}/{about.get('name', '')}" if about.get("name") else about.get("kind", "")


def _source(event: Frozen) -> str:
    source = inside(event, "source")
    names = (
        source.get("component") or event.get("reportingComponent"),
        source.get("host") or event.get("reportingInstance"),
    )
    return ", ".join(name for name in names if name)


COLUMNS = (
    Column("Last Seen", _last_seen),
    text("Type", lambda event: event.get("type") or ""),
    text("Reason", lambda event: event.get("reason") or ""),
    text("Object", _object),
    text("Subobject", lambda event: inside(event, "involvedObject").get("fieldPath") or "", wide=True),
    text("Source", _source, wide=True),
    text("Message", lambda event: (event.get("message") or "").strip()),
    Column("First Seen", _first_seen, priority=1),
    text("Count", _count, wide=True),
    Column("Name", lambda event, _: event["metadata"]["name"], format="name", priority=1),
)
