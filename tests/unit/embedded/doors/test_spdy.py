"""Frames of SPDY/3.1, read in whatever pieces they come."""

import struct
import zlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tessera.embedded.doors.spdy.frames import BrokenFrame, Data, FrameReader, FrameWriter, Leaving, Opened, Ping, Reset
from tessera.embedded.doors.spdy.headers import DICTIONARY, BrokenHeaders, HeaderReader, HeaderWriter

TEXTS = st.text("abcdefghij-0123456789", min_size=1, max_size=20)


def control(kind, body, flags=0):
    return struct.pack("!HHI", 0x8003, kind, flags << 24 | len(body)) + body


def open_stream(writer, stream, headers, flags=0):
    return control(1, struct.pack("!IIH", stream, 0, 0) + writer.write(headers), flags)


def test_the_dictionary_is_the_one_that_the_protocol_prescribes():
    assert (len(DICTIONARY), zlib.adler32(DICTIONARY)) == (1423, 0xE3C6A7C2)


@given(st.lists(st.dictionaries(TEXTS, TEXTS, max_size=4), max_size=4))
def test_headers_arrive_as_they_were_sent_one_block_after_another(blocks):
    writer, reader = HeaderWriter(), HeaderReader()
    assert [reader.read(writer.write(block)) for block in blocks] == blocks


@given(st.lists(st.tuples(st.integers(1, 99), st.binary(max_size=50), st.booleans())), st.integers(1, 7))
def test_data_arrives_in_order_however_it_is_cut(sent, step):
    writer, reader = FrameWriter(), FrameReader()
    wire = b"".join(writer.data(stream, data, is_last=is_last) for stream, data, is_last in sent)
    pieces = [wire[at : at + step] for at in range(0, len(wire), step)]
    assert [frame for piece in pieces for frame in reader.take(piece)] == [Data(*one) for one in sent]


def test_a_stream_is_opened_with_its_headers_in_lower_case():
    writer, reader = HeaderWriter(), FrameReader()
    wire = open_stream(writer, 1, {"streamType": "error", "port": "80"}, flags=1)
    wire += open_stream(writer, 3, {"streamType": "data", "port": "80"})
    opened = list(reader.take(wire))
    assert opened == [
        Opened(1, {"streamtype": "error", "port": "80"}, True),
        Opened(3, {"streamtype": "data", "port": "80"}, False),
    ]


def test_what_asks_for_nothing_is_passed_over():
    settings, window = control(4, b"\x00" * 4), control(9, struct.pack("!II", 1, 1))
    goodbye = control(7, struct.pack("!II", 1, 0))
    wire = settings + window + control(3, struct.pack("!II", 5, 5)) + control(6, struct.pack("!I", 7)) + goodbye
    assert list(FrameReader().take(wire)) == [Reset(5), Ping(7), Leaving()]


def test_a_ping_is_answered_with_its_own_number():
    assert list(FrameReader().take(FrameWriter().pong(7))) == [Ping(7)]


@pytest.mark.parametrize(
    "wire",
    [
        struct.pack("!HHI", 0x8002, 1, 0),
        control(1, b"\x00" * 10 + b"not zlib"),
        control(6, b"\x00"),
        control(1, b"\x00" * 10 + zlib.compress(b"\x00\x00\x00\x01")),
    ],
    ids=["another version", "not packed", "too short", "another dictionary"],
)
def test_what_cannot_be_read_is_no_frame(wire):
    with pytest.raises(BrokenFrame):
        list(FrameReader().take(wire))


def test_headers_that_unpack_to_too_much_are_not_read():
    with pytest.raises(BrokenHeaders, match="more than 65536 bytes"):
        HeaderReader().read(HeaderWriter().write({"bomb": "a" * 1_000_000}))
