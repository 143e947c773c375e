"""Protobuf's wire format: a message is a row of numbers, each with a value whose meaning its reader must know."""

from collections.abc import Iterator

_VARINT, _FIXED64, _BYTES, _FIXED32 = 0, 1, 2, 5
_SIGN, _ALL = 1 << 63, 1 << 64


class Cut(ValueError):
    """The bytes end or go on where they should not."""


def fields(data: bytes) -> Iterator[tuple[int, int | bytes]]:
    """Each field with its value: a whole number, or the bytes of a text or a message."""
    position = 0
    while position < len(data):
        tag, position = _varint(data, position)
        number, kind = tag >> 3, tag & 7
        if kind == _VARINT:
            value, position = _varint(data, position)
            yield number, value
            continue
        if kind == _BYTES:
            size, position = _varint(data, position)
        elif kind in (_FIXED64, _FIXED32):
            size = 8 if kind == _FIXED64 else 4
        else:
            raise Cut(f"field {number} is of kind {kind}, which nobody writes any more")
        if position + size > len(data):
            raise Cut(f"field {number} has {size} bytes, expected no more than {len(data) - position}")
        yield number, data[position : position + size]
        position += size


def signed(value: int) -> int:
    """Negative numbers are written as large ones."""
    return value - _ALL if value & _SIGN else value


def _varint(data: bytes, position: int) -> tuple[int, int]:
    value, shift = 0, 0
    while shift < 70:
        if position >= len(data):
            raise Cut("the message ends within a number")
        byte = data[position]
        position += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value & (_ALL - 1), position
        shift += 7
    raise Cut("a number has more than ten bytes")
