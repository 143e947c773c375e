"""What goes over the socket and what Greet answers: read back as written, and nothing else is believed."""

import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kpu.sharing.addresses import choose_address, seen_from_client
from kpu.sharing.greeting import NONCE_SECONDS, Invitation, Nonces, decode_invitation, encode_invitation
from kpu.sharing.messages import NONCE_BYTES, BadMessage, Kind, Message, decode, encode

NUMBERS = st.integers(0, 2**64 - 1)
NONCES = st.binary(min_size=NONCE_BYTES, max_size=NONCE_BYTES)


@given(st.sampled_from([kind for kind in Kind if kind is not Kind.HELLO]), NUMBERS, NUMBERS)
def test_a_message_is_read_as_it_was_written(kind, region, size):
    assert decode(encode(Message(kind, region, size))) == Message(kind, region, size)


@given(NONCES)
def test_a_greeting_is_read_as_it_was_written(nonce):
    assert decode(encode(Message(Kind.HELLO, nonce=nonce))).nonce == nonce


@given(st.binary(max_size=70))
def test_any_other_packet_is_one_kind_of_error(packet):
    with contextlib.suppress(BadMessage):
        assert encode(decode(packet)) == packet


@given(st.text(st.characters(exclude_categories=["Cs"]), max_size=30), NONCES)
def test_an_invitation_is_read_as_it_was_written(address, nonce):
    invitation = Invitation(address, nonce.hex())
    assert decode_invitation(encode_invitation(invitation)) == invitation


@given(st.binary(max_size=120))
def test_a_reply_that_is_no_invitation_is_none(reply):
    invitation = decode_invitation(reply)
    assert invitation is None or encode_invitation(invitation) == reply


def test_a_nonce_is_good_once_and_not_for_long():
    nonces = Nonces()
    first, second = nonces.give(now=0.0), nonces.give(now=0.0)
    assert nonces.redeem(first, now=1.0)
    assert not nonces.redeem(first, now=1.0)
    assert not nonces.redeem(second, now=NONCE_SECONDS)
    assert not nonces.redeem("", now=0.0)


def test_who_asks_for_nonces_without_end_only_voids_the_oldest():
    nonces = Nonces()
    given_out = [nonces.give(now=0.0) for _ in range(2000)]
    assert not nonces.redeem(given_out[0], now=1.0)
    assert nonces.redeem(given_out[-1], now=1.0)
    assert len(nonces._given) < 1100


def test_servers_that_share_a_directory_have_a_socket_each(tmp_path):
    first, second = choose_address(str(tmp_path)), choose_address(str(tmp_path))
    assert first != second
    assert first.startswith(f"{tmp_path}/")


def test_a_client_finds_the_socket_where_it_mounts_the_directory_itself(tmp_path):
    assert seen_from_client("/there/kpu-1.sock", str(tmp_path)) == f"{tmp_path}/kpu-1.sock"
    assert seen_from_client("/there/kpu-1.sock", None) == "/there/kpu-1.sock"
    assert seen_from_client("@kpu-1", str(tmp_path)) == "@kpu-1"


def test_a_path_too_long_for_a_socket_is_refused_with_its_limit():
    with pytest.raises(ValueError, match="at most 107 bytes"):
        choose_address("/" + "x" * 200)
