"""Messages written by hand are those of protobuf, and what is none of them is refused with one class of error."""

import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kpu.errors import MalformedMessage
from kpu.wire.fields import varint
from kpu.wire.messages import TensorChunk, TensorRequest, TensorResponse

# protobuf's own strings are UTF-8, which has no lone surrogates
text = st.text(st.characters(exclude_categories=["Cs"]), max_size=40)
uint32 = st.integers(0, 2**32 - 1)
maps = st.dictionaries(text, text, max_size=5)
chunks = st.builds(TensorChunk, text, uint32, st.binary(max_size=300), uint32, st.booleans(), maps)
requests = st.builds(TensorRequest, uint32, maps)
responses = st.builds(TensorResponse, st.booleans(), text, st.lists(text, max_size=4).map(tuple))


def as_dict(message):
    return {
        "tensor_id": message.tensor_id,
        "chunk_number": message.chunk_number,
        "data": bytes(message.data),
        "total_chunks": message.total_chunks,
        "is_last": message.is_last,
        "metadata": dict(message.metadata),
    }


@given(chunks)
def test_a_chunk_that_we_wrote_is_read_by_protobuf(protocol, chunk):
    assert as_dict(protocol.TensorChunk.FromString(chunk.encode())) == as_dict(chunk)


@given(chunks)
def test_a_chunk_that_protobuf_wrote_is_read_by_us(protocol, chunk):
    assert as_dict(TensorChunk.decode(protocol.TensorChunk(**as_dict(chunk)).SerializeToString())) == as_dict(chunk)


@given(requests)
def test_requests_go_both_ways(protocol, request_):
    theirs = protocol.TensorRequest.FromString(request_.encode())
    assert (theirs.count, dict(theirs.parameters)) == (request_.count, request_.parameters)
    assert TensorRequest.decode(theirs.SerializeToString()) == request_


@given(responses)
def test_responses_go_both_ways(protocol, response):
    theirs = protocol.TensorResponse.FromString(response.encode())
    assert (theirs.success, theirs.message) == (response.success, response.message)
    assert tuple(theirs.received_tensor_ids) == response.received_tensor_ids
    assert TensorResponse.decode(theirs.SerializeToString()) == response


@pytest.mark.parametrize(
    "unknown",
    [
        b"\x78\x05",  # field 15, a number
        b"\x7a\x03abc",  # field 15, bytes
        b"\x7d\x01\x02\x03\x04",  # field 15, 32 bits
        b"\x79\x01\x02\x03\x04\x05\x06\x07\x08",  # field 15, 64 bits
    ],
)
def test_fields_of_a_later_version_are_skipped(unknown):
    chunk = TensorChunk("id", 3, b"data", 5)
    assert as_dict(TensorChunk.decode(unknown + chunk.encode() + unknown)) == as_dict(chunk)


@pytest.mark.parametrize(
    "message",
    [
        b"\x0a",  # a length is missing
        b"\x1a\xff\xff\xff\xff\x0fabc",  # data says it has 4 GiB
        b"\x10" + b"\xff" * 10 + b"\x01",  # a number without end
        b"\x10\xff",  # a number cut off
        b"\x0a\x02\xff\xfe",  # an id that is no UTF-8
        b"\x00\x01",  # field 0
        b"\x1b",  # a group
        b"\x08\x01",  # an id that is a number
        b"\x12\x01a",  # a chunk_number that is bytes
        b"\x32\x02\x0a\x05",  # an entry of metadata cut off
        b"\x0a\x81\x10" + b"x" * 2049,  # an id without measure
        b"".join(b"\x32\x06\x0a\x04" + b"%04d" % number for number in range(400)),  # a map without measure
    ],
)
def test_what_is_no_message_is_refused(message):
    with pytest.raises(MalformedMessage):
        TensorChunk.decode(message)


@given(st.binary(max_size=400))
def test_no_bytes_whatever_raise_anything_else(message):
    for kind in (TensorChunk, TensorRequest, TensorResponse):
        with contextlib.suppress(MalformedMessage):
            kind.decode(message)


@given(chunks, st.data())
def test_a_message_with_changed_bytes_is_read_or_refused(chunk, data):
    message = bytearray(chunk.encode())
    for _ in range(data.draw(st.integers(1, 3)) if message else 0):
        message[data.draw(st.integers(0, len(message) - 1))] = data.draw(st.integers(0, 255))
    with contextlib.suppress(MalformedMessage):
        TensorChunk.decode(bytes(message))


@pytest.mark.parametrize(("value", "encoded"), [(0, b"\0"), (127, b"\x7f"), (128, b"\x80\1"), (300, b"\xac\2")])
def test_numbers_are_written_seven_bits_at_a_time(value, encoded):
    assert varint(value) == encoded
