"""What two processes say over the Unix socket: one short message per packet, of one fixed form.

| Message | From | Means |
|---|---|---|
| HELLO nonce | client | I am who was given this nonce over gRPC |
| WELCOME | server | you are |
| OFFER region size, and a descriptor | sender | here is memory; may I refer to it? |
| ACCEPT region | receiver | mapped |
| DECLINE region | receiver | not mapped, send what it holds by another way |
| RELEASE region | receiver | one tensor that lay there is gone |
| FORGET region | sender | I shall not refer to it again; unmap it when your tensors are gone |
| RETURN region | receiver | a tensor that I send refers to this region of yours: keep it, also when I release it |

Numbers of regions are the sender's, count up, and are never used again.
"""

import struct
from dataclasses import dataclass
from enum import IntEnum

NONCE_BYTES = 32
LONGEST = 64
_NUMBERS = struct.Struct("<BQQ")


class Kind(IntEnum):
    HELLO = 1
    WELCOME = 2
    OFFER = 3
    ACCEPT = 4
    DECLINE = 5
    RELEASE = 6
    FORGET = 7
    RETURN = 8


class BadMessage(Exception):
    """A packet that is none of the messages above."""


@dataclass(frozen=True)
class Message:
    kind: Kind
    region: int = 0
    size: int = 0
    nonce: bytes = b""


def encode(message: Message) -> bytes:
    if message.kind is Kind.HELLO:
        return bytes([Kind.HELLO]) + message.nonce
    return _NUMBERS.pack(message.kind, message.region, message.size)


def decode(packet: bytes) -> Message:
    if packet[:1] == bytes([Kind.HELLO]):
        if len(packet) != 1 + NONCE_BYTES:
            raise BadMessage(f"a greeting has {len(packet)} bytes, expected {1 + NONCE_BYTES}")
        return Message(Kind.HELLO, nonce=packet[1:])
    if len(packet) != _NUMBERS.size:
        raise BadMessage(f"a message has {len(packet)} bytes, expected {_NUMBERS.size}")
    kind, region, size = _NUMBERS.unpack(packet)
    try:
        return Message(Kind(kind), region, size)
    except ValueError:
        raise BadMessage(f"a message is of kind {kind}, expected {min(Kind)} to {max(Kind)}") from None
