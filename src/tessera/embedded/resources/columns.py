"""Columns of a table: what kubectl prints for a kind, each a name and a way to fill a cell."""

from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from typing import Any

import msgspec

from tessera.embedded.documents import Document, Frozen
from tessera.embedded.resources import json_paths
from tessera.embedded.resources.parts import each, inside

Cell = Callable[[Frozen, datetime], Any]
"""From an object and the time to what is shown of it: text, a number, a truth value or nothing."""

NONE = "<none>"
UNKNOWN = "<unknown>"
_ABOUT_NAME = "Name must be unique within a namespace."
_ABOUT_AGE = "CreationTimestamp is a timestamp representing the server time when this object was created."


class Column(msgspec.Struct, frozen=True):
    """`priority` is 0 for what is always shown and 1 for what is shown on demand."""

    name: str
    cell: Cell
    type: str = "string"
    format: str = ""
    priority: int = 0
    description: str = ""

    def definition(self) -> Document:
        return {
            "name": self.name,
            "type": self.type,
            "format": self.format,
            "description": self.description or self.name,
            "priority": self.priority,
        }


def text(name: str, cell: Callable[[Frozen], Any], *, wide: bool = False, type: str = "string") -> Column:
    """A column that does not depend on the time."""
    return Column(name, lambda document, _: cell(document), type, "", int(wide))


def at(*path: str, absent: Any = "") -> Callable[[Frozen], Any]:
    """A cell with what lies at a path of plain fields."""
    *parents, last = path

    def cell(document: Frozen) -> Any:
        for name in parents:
            document = inside(document, name)
        value = document.get(last)
        return absent if value is None else value

    return cell


def age_at(document: Frozen, path: str, now: datetime) -> str:
    found = json_paths.find(document, path)
    return since(found[0] if found else None, now)


NAME = Column("Name", lambda document, _: document["metadata"]["name"], "string", "name", 0, _ABOUT_NAME)
AGE = Column("Age", lambda document, now: age_at(document, ".metadata.creationTimestamp", now), description=_ABOUT_AGE)
CREATED = text("Created At", lambda document: document["metadata"].get("creationTimestamp"), type="date")


def printed(version: Frozen) -> Sequence[Column]:
    """The columns of a custom resource: its name and what its definition says, or else its age."""
    said = each(version, "additionalPrinterColumns")
    if not said:
        return (NAME, msgspec.structs.replace(AGE, type="date"))
    return (NAME, *(_printed(column) for column in said))


def _printed(column: Frozen) -> Column:
    path, kind = column["jsonPath"], column["type"]

    def cell(document: Frozen, now: datetime) -> Any:
        found = json_paths.find(document, path)
        if not found:
            return None
        return since(found[0], now) if kind == "date" else _shown(found, kind)

    format, priority = column.get("format") or "", column.get("priority") or 0
    return Column(column["name"], cell, kind, format, priority, column.get("description") or "")


def _shown(found: list[Any], kind: str) -> Any:
    value = found[0] if len(found) == 1 else " ".join(str(one) for one in found)
    if kind != "string":
        return value
    return value if isinstance(value, str) else msgspec.json.encode(value).decode()


def since(timestamp: Any, now: datetime) -> str:
    """As short as kubectl says it: 5s, 3m20s, 4h, 12d."""
    if not isinstance(timestamp, str):
        return UNKNOWN
    try:
        then = datetime.fromisoformat(timestamp.replace("Z", "+00:00"))
    except ValueError:
        return UNKNOWN
    then = then if then.tzinfo else then.replace(tzinfo=UTC)
    return duration(int((now - then).total_seconds()))


def duration(seconds: int) -> str:
    if seconds < -1:
        return "<invalid>"
    if seconds < 120:
        return f"{max(seconds, 0)}s"
    minutes, hours, days = seconds // 60, seconds // 3600, seconds // 86400
    if minutes < 10:
        return _two(minutes, "m", seconds % 60, "s")
    if minutes < 180:
        return f"{minutes}m"
    if hours < 8:
        return _two(hours, "h", minutes % 60, "m")
    if hours < 48:
        return f"{hours}h"
    if days < 8:
        return _two(days, "d", hours % 24, "h")
    if days < 365 * 2:
        return f"{days}d"
    return _two(days // 365, "y", days % 365, "d") if days < 365 * 8 else f"{days // 365}y"


def _two(large: int, unit: str, small: int, smaller: str) -> str:
    return f"{large}{unit}{small}{smaller}" if small else f"{large}{unit}"
