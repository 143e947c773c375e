"""Handshakes: four spellings, two date layouts, and clocks that disagree."""

from datetime import UTC, datetime, timedelta, timezone

import pytest

from tessera.errors import InvalidAnnotation
from tessera.model.annotations.handshakes import (
    Handshake,
    HandshakeState,
    HandshakeStyle,
    age_seconds,
    decode_handshake,
    encode_handshake,
)

AT = datetime(2026, 1, 23, 4, 30, 4, tzinfo=UTC)


@pytest.mark.parametrize(
    ("text", "state", "at"),
    [
        ("Reported 2026-01-23 04:30:04", HandshakeState.REPORTED, AT),
        ("Reported_2026.01.23 04:30:04", HandshakeState.REPORTED, AT),
        ("Reported_2026-01-23 04:30:04", HandshakeState.REPORTED, AT),
        ("Reported 2026-01-23 04:30:04.43 +0000 UTC m=+11.2", HandshakeState.REPORTED, AT.replace(microsecond=430_000)),
        ("Reported 2026-01-23 04:30:04.123456789 +0000 UTC", HandshakeState.REPORTED, AT.replace(microsecond=123_456)),
        ("Reported 2026-01-23 12:30:04 +0800 CST m=+0.1", HandshakeState.REPORTED, AT),
        ("Reported 2026-01-22 23:30:04 -0500 EST", HandshakeState.REPORTED, AT),
        ("2026-01-23T04:30:04Z", HandshakeState.REPORTED, AT),
        ("2026-01-23T10:00:04+05:30", HandshakeState.REPORTED, AT),
        ("Requesting_2026-01-23 04:30:04", HandshakeState.REQUESTING, AT),
        ("Requesting_2026.01.23 04:30:04", HandshakeState.REQUESTING, AT),
        ("Deleted_2026-01-23 04:30:04", HandshakeState.DELETED, AT),
        ("Deleted", HandshakeState.DELETED, None),
        ("Requesting_", HandshakeState.REQUESTING, None),
        ("Reported 2026-13-41 04:30:04", HandshakeState.REPORTED, None),
        ("Reported 0001-01-01 00:00:00 +2300", HandshakeState.REPORTED, None),
        ("Reported 2026-01-23 04:30:04 +9999", HandshakeState.REPORTED, None),
        ("", HandshakeState.REPORTED, None),
    ],
)
def test_every_spelling_is_read(text: str, state: HandshakeState, at: datetime | None):
    assert decode_handshake(text) == Handshake(state, at)


def test_a_time_without_a_zone_is_in_the_zone_that_the_caller_knows():
    beijing = timezone(timedelta(hours=8))
    assert decode_handshake("Requesting_2026-01-23 12:30:04", zone=beijing).at == AT
    assert decode_handshake("Reported 2026-01-23 04:30:04 +0000 UTC", zone=beijing).at == AT


@pytest.mark.parametrize(
    ("state", "style", "text"),
    [
        (HandshakeState.REPORTED, HandshakeStyle.SEED, "Reported 2026-01-23 04:30:04"),
        (HandshakeState.REPORTED, HandshakeStyle.HAMI, "Reported 2026-01-23 04:30:04.43 +0000 UTC"),
        (HandshakeState.REPORTED, HandshakeStyle.ASCEND, "Reported_2026.01.23 04:30:04"),
        (HandshakeState.REQUESTING, HandshakeStyle.SEED, "Requesting_2026-01-23 04:30:04"),
        (HandshakeState.DELETED, HandshakeStyle.HAMI, "Deleted_2026-01-23 04:30:04"),
    ],
)
def test_each_state_and_style_has_one_spelling(state: HandshakeState, style: HandshakeStyle, text: str):
    at = AT.replace(microsecond=430_000).astimezone(timezone(timedelta(hours=-3)))
    assert encode_handshake(Handshake(state, at), style) == text


@pytest.mark.parametrize("at", [None, datetime(2026, 1, 23)])
def test_a_handshake_without_time_or_zone_is_not_written(at: datetime | None):
    with pytest.raises(InvalidAnnotation) as error:
        encode_handshake(Handshake(HandshakeState.REPORTED, at))
    assert str(error.value) == "a Reported handshake has no time with a zone, expected one such as UTC"


def test_age_counts_from_the_time_that_was_written():
    assert age_seconds(Handshake(HandshakeState.REPORTED, AT), AT + timedelta(minutes=5)) == 300
    assert age_seconds(Handshake(HandshakeState.REPORTED, AT), AT - timedelta(seconds=2)) == -2
    assert age_seconds(Handshake(HandshakeState.REPORTED), AT) is None
