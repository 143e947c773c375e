"""What may be written: only what every reader gets back as it was meant."""

from collections.abc import Iterable

from tessera.errors import InvalidAnnotation
from tessera.model.annotations.complaints import invalid

LARGEST = 2**31 - 1


def written_text(value: str, owner: str, what: str, separators: str = "") -> str:
    """The value itself, unless its form would cut it apart or trim it."""
    if value != value.strip() or any(separator in value for separator in separators) or not _is_unicode(value):
        without = " or ".join(f'"{separator}"' for separator in separators)
        without = f" without {without}," if without else ""
        raise invalid(owner, what, value, f"a text{without} with no space at its ends")
    return value


def written_name(value: str, owner: str, what: str, separators: str = "") -> str:
    """As `written_text`, and not empty."""
    if not value:
        raise invalid(owner, what, value, "a name")
    return written_text(value, owner, what, separators)


def written_number(value: int, owner: str, what: str) -> int:
    if not 0 <= value <= LARGEST:
        raise invalid(owner, what, value, f"a whole number from 0 to {LARGEST}")
    return value


def written_once(names: Iterable[str], what: str) -> None:
    """Refuse a name that stands twice where readers take the first."""
    seen: set[str] = set()
    for name in names:
        if name in seen:
            raise InvalidAnnotation(f"{what} {name} stands twice, expected each {what} once")
        seen.add(name)


def _is_unicode(value: str) -> bool:
    return value.isascii() or not any("\ud800" <= character <= "\udfff" for character in value)
