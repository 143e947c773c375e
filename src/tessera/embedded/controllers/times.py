"""Times as objects carry them: whole seconds in UTC."""

from datetime import UTC, datetime

_FORMAT = "%Y-%m-%dT%H:%M:%SZ"


def write_time(moment: datetime) -> str:
    return moment.astimezone(UTC).strftime(_FORMAT)


def read_time(text: str) -> datetime:
    """Fractions of a second are read too: some objects have them."""
    return datetime.fromisoformat(text)


def seconds_since(text: str, now: datetime) -> float:
    return (now - read_time(text)).total_seconds()
