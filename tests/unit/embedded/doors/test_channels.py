"""Messages of exec and attach, and how an end is told in them."""

import pytest

from tessera.embedded.doors.channels import (
    V4,
    V5,
    Channel,
    EndOfInput,
    Input,
    Size,
    choose_protocol,
    read_message,
    write_message,
)
from tessera.embedded.doors.endings import ending_of


@pytest.mark.parametrize(
    ("message", "told"),
    [
        (b"\x00hello", Input(b"hello")),
        (b"\xff\x00", EndOfInput()),
        (b'\x04{"Width":80,"Height":25}', Size(columns=80, rows=25)),
        (b"\x00", None),
        (b"", None),
        (b"\xff\x01", None),
        (b"\x04no size", None),
        (b"\x01not for us", None),
    ],
)
def test_the_first_byte_says_what_is_meant(message, told):
    assert read_message(message) == told


def test_output_goes_with_its_channel():
    assert write_message(Channel.STDERR, b"oh") == b"\x02oh"


def test_the_newest_protocol_that_both_know_is_spoken():
    assert choose_protocol([V4, V5, "v3.channel.k8s.io"]) == V5
    assert choose_protocol(["v4.channel.k8s.io"]) == V4
    assert choose_protocol(["v9.channel.k8s.io"]) is None


def test_clients_find_the_exit_code_where_they_look_for_it():
    assert ending_of(0)["status"] == "Success"
    failed = ending_of(3)
    assert (failed["status"], failed["reason"]) == ("Failure", "NonZeroExitCode")
    assert failed["details"]["causes"] == [{"reason": "ExitCode", "message": "3"}]
