"""Points in time as the peers write them.

Go programs print times in four ways, two of them without a zone. One pattern finds them all; what carries no zone is
taken as the caller says, UTC unless told otherwise.
"""

import re
from datetime import UTC, datetime, timedelta, timezone, tzinfo

_TIME = re.compile(
    r"(?P<year>\d{4})[-.](?P<month>\d\d)[-.](?P<day>\d\d)[ T](?P<hour>\d\d):(?P<minute>\d\d):(?P<second>\d\d)"
    r"(?:[.,](?P<fraction>\d+))?\s?(?P<zone>[Zz]|[+-]\d\d:?\d\d)?",
    re.ASCII,
)


def find_time(text: str, zone: tzinfo = UTC) -> datetime | None:
    """The first point in time in a text, in UTC; None where there is none that a calendar knows."""
    match = _TIME.search(text)
    if match is None:
        return None
    try:
        second = datetime(
            *(int(match[part]) for part in ("year", "month", "day", "hour", "minute", "second")),
            microsecond=int((match["fraction"] or "0").ljust(6, "0")[:6]),
            tzinfo=_zone(match["zone"], zone),
        )
        return second.astimezone(UTC)
    except (ValueError, OverflowError):
        return None


def rfc3339(at: datetime) -> str:
    """Whole seconds in UTC: 2026-08-21T10:00:05Z."""
    return f"{at.astimezone(UTC).replace(tzinfo=None).isoformat(timespec='seconds')}Z"


def date_time(at: datetime, separator: str = "-") -> str:
    """Whole seconds in UTC without saying so: 2026-08-21 10:00:05."""
    day, _, clock = at.astimezone(UTC).replace(tzinfo=None).isoformat(" ", timespec="seconds").partition(" ")
    return f"{day.replace('-', separator)} {clock}"


def go_string(at: datetime) -> str:
    """As Go's time.String() prints UTC: 2026-08-21 10:00:05.43 +0000 UTC."""
    fraction = f".{at.microsecond:06d}".rstrip("0").rstrip(".")
    return f"{date_time(at)}{fraction} +0000 UTC"


def _zone(text: str | None, default: tzinfo) -> tzinfo:
    if not text:
        return default
    if text in "Zz":
        return UTC
    away = timedelta(hours=int(text[1:3]), minutes=int(text[-2:]))
    return timezone(-away if text[0] == "-" else away)
