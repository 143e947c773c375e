"""Several streams in one WebSocket, as `exec` and `attach` have them. Pure.

The first byte of a message says its channel. In the fifth version of the protocol a client can also say that a channel
has no more; before it, the end of input could not be told.
"""

from enum import IntEnum
from typing import NamedTuple

import msgspec

V5, V4 = "v5.channel.k8s.io", "v4.channel.k8s.io"
PROTOCOLS = (V5, V4)
"""The better one first."""


class Channel(IntEnum):
    STDIN = 0
    STDOUT = 1
    STDERR = 2
    ERROR = 3
    RESIZE = 4
    CLOSE = 255


class Input(NamedTuple):
    data: bytes


class EndOfInput(NamedTuple):
    pass


class Size(msgspec.Struct, frozen=True):
    """Of a terminal, in characters."""

    columns: int = msgspec.field(name="Width", default=0)
    rows: int = msgspec.field(name="Height", default=0)


Told = Input | EndOfInput | Size


def choose_protocol(offered: list[str]) -> str | None:
    return next((protocol for protocol in PROTOCOLS if protocol in offered), None)


def read_message(message: bytes) -> Told | None:
    """None for one that says nothing to us; clients open a channel with an empty message."""
    if len(message) < 2:
        return None
    channel, data = message[0], message[1:]
    if channel == Channel.STDIN:
        return Input(data)
    if channel == Channel.CLOSE:
        return EndOfInput() if data[0] == Channel.STDIN else None
    return _read_size(data) if channel == Channel.RESIZE else None


def write_message(channel: Channel, data: bytes) -> bytes:
    return bytes((channel,)) + data


def _read_size(data: bytes) -> Size | None:
    try:
        return msgspec.json.decode(data, type=Size)
    except msgspec.DecodeError:
        return None
