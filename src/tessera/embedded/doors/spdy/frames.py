"""Frames: what one side tells the other, and the bytes for it."""

import struct
from collections.abc import Iterator, Mapping
from enum import IntEnum
from typing import NamedTuple

from tessera.embedded.doors.spdy.headers import BrokenHeaders, HeaderReader, HeaderWriter

VERSION = 3
FIN = 0x01
HEAD_BYTES = 8
_CONTROL = 0x8000_0000
_STREAM = 0x7FFF_FFFF
_REFUSED = 3


class Type(IntEnum):
    SYN_STREAM = 1
    SYN_REPLY = 2
    RST_STREAM = 3
    PING = 6
    GOAWAY = 7


class BrokenFrame(ValueError):
    """The other side does not speak as it should; nothing after it can be understood."""


class Opened(NamedTuple):
    """The other side has opened a stream."""

    stream: int
    headers: Mapping[str, str]
    is_last: bool


class Data(NamedTuple):
    """`is_last`: it sends no more on this stream."""

    stream: int
    data: bytes
    is_last: bool


class Reset(NamedTuple):
    stream: int


class Ping(NamedTuple):
    number: int


class Leaving(NamedTuple):
    pass


Frame = Opened | Data | Reset | Ping | Leaving


class FrameReader:
    """Bytes in, in whatever pieces; whole frames out."""

    def __init__(self) -> None:
        self._rest = bytearray()
        self._headers = HeaderReader()

    def take(self, data: bytes) -> Iterator[Frame]:
        """Raises BrokenFrame."""
        self._rest += data
        while len(self._rest) >= HEAD_BYTES:
            first, flagged = struct.unpack_from("!II", self._rest)
            flags, length = flagged >> 24, flagged & 0xFF_FFFF
            if len(self._rest) < HEAD_BYTES + length:
                return
            body = bytes(self._rest[HEAD_BYTES : HEAD_BYTES + length])
            del self._rest[: HEAD_BYTES + length]
            frame = self._control(first, flags, body) if first & _CONTROL else Data(first, body, bool(flags & FIN))
            if frame is not None:
                yield frame

    def _control(self, first: int, flags: int, body: bytes) -> Frame | None:
        """None for what asks for nothing: settings, windows, replies."""
        if (first & _STREAM) >> 16 != VERSION:
            raise BrokenFrame(f"a frame is of version {(first & _STREAM) >> 16}, expected {VERSION}")
        try:
            match first & 0xFFFF:
                case Type.SYN_STREAM:
                    return Opened(_number(body), self._headers.read(body[10:]), bool(flags & FIN))
                case Type.RST_STREAM:
                    return Reset(_number(body))
                case Type.PING:
                    return Ping(struct.unpack("!I", body)[0])
                case Type.GOAWAY:
                    return Leaving()
                case _:
                    return None
        except (struct.error, BrokenHeaders) as error:
            raise BrokenFrame(str(error)) from None


class FrameWriter:
    def __init__(self) -> None:
        self._headers = HeaderWriter()

    def accept(self, stream: int) -> bytes:
        return _control(Type.SYN_REPLY, struct.pack("!I", stream) + self._headers.write({}))

    def refuse(self, stream: int) -> bytes:
        return _control(Type.RST_STREAM, struct.pack("!II", stream, _REFUSED))

    def pong(self, number: int) -> bytes:
        return _control(Type.PING, struct.pack("!I", number))

    def data(self, stream: int, data: bytes, *, is_last: bool = False) -> bytes:
        return struct.pack("!II", stream, (FIN if is_last else 0) << 24 | len(data)) + data


def _control(kind: Type, body: bytes) -> bytes:
    return struct.pack("!HHI", 0x8000 | VERSION, kind, len(body)) + body


def _number(body: bytes) -> int:
    return struct.unpack_from("!I", body)[0] & _STREAM
