"""Is the agent of a node alive? The handshake annotation, in every spelling that has been seen.

HAMi tells states apart by a word anywhere in the text and takes everything else as reported; so do we. A time that
cannot be read is None, never an error: a node is not lost because a clock was printed oddly.
"""

from datetime import UTC, datetime, tzinfo
from enum import StrEnum

import msgspec

from tessera.errors import InvalidAnnotation
from tessera.model.annotations.times import date_time, find_time, go_string


class HandshakeState(StrEnum):
    REQUESTING = "Requesting"
    REPORTED = "Reported"
    DELETED = "Deleted"


class HandshakeStyle(StrEnum):
    """How a report is spelled. Requests and deletions are spelled one way only."""

    SEED = "seed"  # Reported 2024-01-23 04:30:04
    HAMI = "hami"  # Reported 2024-01-23 04:30:04.43 +0000 UTC
    ASCEND = "ascend"  # Reported_2024.01.23 04:30:04


class Handshake(msgspec.Struct, frozen=True):
    state: HandshakeState
    at: datetime | None = None


def decode_handshake(text: str, zone: tzinfo = UTC) -> Handshake:
    """`zone` is where a time that names no zone was written; HAMi's scheduler writes local time."""
    return Handshake(_state_of(text), find_time(text, zone))


def encode_handshake(handshake: Handshake, style: HandshakeStyle = HandshakeStyle.SEED) -> str:
    """The time in UTC, cut to seconds except in HAMi's own style."""
    if handshake.at is None or handshake.at.tzinfo is None:
        raise InvalidAnnotation(f"a {handshake.state} handshake has no time with a zone, expected one such as UTC")
    if handshake.state is not HandshakeState.REPORTED:
        return f"{handshake.state}_{date_time(handshake.at)}"
    match style:
        case HandshakeStyle.SEED:
            return f"{handshake.state} {date_time(handshake.at)}"
        case HandshakeStyle.HAMI:
            return f"{handshake.state} {go_string(handshake.at)}"
        case HandshakeStyle.ASCEND:
            return f"{handshake.state}_{date_time(handshake.at, separator='.')}"


def age_seconds(handshake: Handshake, now: datetime) -> float | None:
    """How long ago it was written; negative when the writer's clock is ahead, None when it says no time."""
    return None if handshake.at is None else (now - handshake.at).total_seconds()


def _state_of(text: str) -> HandshakeState:
    for state in (HandshakeState.REQUESTING, HandshakeState.DELETED):
        if state in text:
            return state
    return HandshakeState.REPORTED
