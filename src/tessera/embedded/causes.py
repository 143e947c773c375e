"""Causes in Kubernetes' words: one maker for each way in which a field can be wrong."""

from collections.abc import Iterable
from typing import Any

import msgspec

from tessera.embedded.refusals import Cause


def required(field: str, detail: str = "") -> Cause:
    return Cause("FieldValueRequired", f"Required value: {detail}" if detail else "Required value", field)


def invalid(field: str, value: Any, detail: str) -> Cause:
    return Cause("FieldValueInvalid", f"Invalid value: {shown(value)}: {detail}", field)


def type_invalid(field: str, value: Any, detail: str) -> Cause:
    return Cause("FieldValueTypeInvalid", f"Invalid value: {shown(value)}: {detail}", field)


def not_supported(field: str, value: Any, supported: Iterable[str]) -> Cause:
    known = ", ".join(shown(one) for one in supported)
    return Cause("FieldValueNotSupported", f"Unsupported value: {shown(value)}: supported values: {known}", field)


def duplicate(field: str, value: Any) -> Cause:
    return Cause("FieldValueDuplicate", f"Duplicate value: {shown(value)}", field)


def forbidden(field: str, detail: str) -> Cause:
    return Cause("FieldValueForbidden", f"Forbidden: {detail}", field)


def not_found(field: str, value: Any) -> Cause:
    return Cause("FieldValueNotFound", f"Not found: {shown(value)}", field)


def immutable(field: str, value: Any) -> Cause:
    return invalid(field, value, "field is immutable")


def too_long(field: str, limit: int) -> Cause:
    return Cause("FieldValueTooLong", f"Too long: may not be more than {limit} bytes", field)


def too_many(field: str, count: int, limit: int) -> Cause:
    return Cause("FieldValueTooMany", f"Too many: {count}: must have at most {limit} items", field)


def below_zero(field: str, value: Any) -> list[Cause]:
    """Why a number that may be absent is too small; nothing if it is not."""
    is_below = isinstance(value, int) and value < 0
    return [invalid(field, value, "must be greater than or equal to 0")] if is_below else []


def unsupported_choice(field: str, value: Any, supported: tuple[str, ...]) -> list[Cause]:
    """Why a word that must be there is none of these; nothing if it is one."""
    return [] if value in supported else [not_supported(field, value or "", supported)]


def shown(value: Any) -> str:
    """A value as messages quote it: strings in quotes, everything else as JSON."""
    return msgspec.json.encode(value).decode()
