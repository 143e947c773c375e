"""Protobuf's encoding, as much of it as our messages need: varints, lengths, and skipping what is not known."""

from collections.abc import Iterator, Mapping
from functools import lru_cache

from kpu.errors import MalformedMessage

VARINT, FIXED64, LENGTH, FIXED32 = 0, 1, 2, 5
_FIXED_BYTES = {FIXED64: 8, FIXED32: 4}
_UINT32 = 2**32 - 1
_UINT64 = 2**64 - 1
_MAP_ENTRIES_LIMIT = 256
_MAP_BYTES_LIMIT = 64 << 10
_REMEMBERED_ENTRY_BYTES = 128

Field = tuple[int, int | memoryview]


def varint(value: int) -> bytes:
    if value < 0x80:
        return bytes((value,))
    encoded = bytearray()
    while value >= 0x80:
        encoded.append(value & 0x7F | 0x80)
        value >>= 7
    encoded.append(value)
    return bytes(encoded)


def number_field(number: int, value: int) -> bytes:
    """A scalar. As proto3 has it, zero is not written at all."""
    return bytes((number << 3 | VARINT,)) + varint(value) if value else b""


def length_header(number: int, length: int) -> bytes:
    """What stands before a field of that many bytes."""
    return bytes((number << 3 | LENGTH,)) + varint(length)


def bytes_field(number: int, value: bytes) -> bytes:
    return length_header(number, len(value)) + value


def text_field(number: int, value: str) -> bytes:
    return bytes_field(number, value.encode()) if value else b""


def map_field(number: int, entries: Mapping[str, str]) -> bytes:
    return b"".join(
        bytes_field(number, bytes_field(1, key.encode()) + bytes_field(2, value.encode()))
        for key, value in entries.items()
    )


def read_fields(message: bytes) -> Iterator[Field]:
    """Every field with its number, in the order of the message: whole numbers, or a view of the bytes."""
    at, end = 0, len(message)
    view = memoryview(message)
    while at < end:
        tag, at = _read_varint(message, at)
        number, kind = tag >> 3, tag & 7
        if not 0 < number < 2**29:
            raise MalformedMessage(f"a field has the number {number}, which protobuf does not have")
        if kind == VARINT:
            value, at = _read_varint(message, at)
            yield number, value
            continue
        if kind == LENGTH:
            length, at = _read_varint(message, at)
        else:
            length = _FIXED_BYTES.get(kind, -1)
        if length < 0:
            raise MalformedMessage(f"field {number} is of wire type {kind}, which nothing here uses")
        if length > end - at:
            raise MalformedMessage(f"field {number} says it has {length} bytes, but {end - at} are left in the message")
        yield number, view[at : at + length]
        at += length


def as_uint32(value: int | memoryview) -> int:
    if not isinstance(value, int):
        raise MalformedMessage("a field holds bytes, expected a whole number")
    return value & _UINT32


def as_bytes(value: int | memoryview) -> memoryview:
    if isinstance(value, int):
        raise MalformedMessage("a field holds a whole number, expected bytes")
    return value


def as_text(value: int | memoryview) -> str:
    try:
        return str(as_bytes(value), "utf-8")
    except UnicodeDecodeError:
        raise MalformedMessage("a text field is not UTF-8") from None


def add_map_entry(entries: dict[str, str], value: int | memoryview) -> None:
    """One more entry of a map. Maps are small: whoever sends a large one means harm."""
    encoded = as_bytes(value)
    if len(entries) >= _MAP_ENTRIES_LIMIT or len(encoded) > _MAP_BYTES_LIMIT:
        raise MalformedMessage(f"a map has more than {_MAP_ENTRIES_LIMIT} entries or {_MAP_BYTES_LIMIT} bytes in one")
    read = _read_entry_again if len(encoded) <= _REMEMBERED_ENTRY_BYTES else _read_entry
    key, text = read(bytes(encoded))
    entries[key] = text


def _read_entry(encoded: bytes) -> tuple[str, str]:
    pair = {1: "", 2: ""}
    for number, part in read_fields(encoded):
        if number in pair:
            pair[number] = as_text(part)
    return pair[1], pair[2]


_read_entry_again = lru_cache(maxsize=1024)(_read_entry)


def _read_varint(message: bytes, at: int) -> tuple[int, int]:
    try:
        value = message[at]
        if value < 0x80:
            return value, at + 1
        value &= 0x7F
        for shift in range(7, 70, 7):
            at += 1
            byte = message[at]
            value |= (byte & 0x7F) << shift
            if byte < 0x80:
                return value & _UINT64, at + 1
    except IndexError:
        raise MalformedMessage("a message ends in the middle of a number") from None
    raise MalformedMessage("a number has more than ten bytes")
