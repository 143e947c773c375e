"""Chunks become the tensor they were cut from, in whatever order they come; what lies is refused before it costs."""

import contextlib
import tracemalloc

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kpu.errors import BypassClosed, MalformedMessage, TooLarge, TransferFailed, UnsupportedTensor
from kpu.tensors import Description, make_room, take
from kpu.wire.assembling import EARLY_BYTES_LIMIT, EARLY_CHUNKS_LIMIT, Assembler
from kpu.wire.fields import length_header
from kpu.wire.limits import Limits
from kpu.wire.messages import TensorChunk
from kpu.wire.splitting import split

LIMITS = Limits(tensor_bytes=1 << 20, open_tensors=8)


def chunks_of(tensor_id, data, chunk_bytes):
    return [TensorChunk.decode(message) for message in split(tensor_id, take(data), chunk_bytes)]


def assemble(chunks, limits=LIMITS, room=make_room):
    assembler = Assembler(limits, room=room)
    arrived = [assembler.add(chunk, assembler.announces(chunk)) for chunk in chunks]
    assembler.finish()
    return {each.tensor_id: np.asarray(each.tensor()) for each in arrived if each}


def no_room(description: Description):
    raise AssertionError(f"room was made for {description}")


def first(data=b"", total=1, **metadata):
    told = {"shape": "8", "dtype": "uint8", **metadata}
    return TensorChunk("t", 0, data, total, metadata={key: value for key, value in told.items() if value is not None})


payloads = st.binary(max_size=200).map(lambda raw: np.frombuffer(raw, np.uint8))


@given(payloads, st.integers(1, 64), st.randoms(use_true_random=False))
def test_chunks_in_any_order_become_the_tensor(data, chunk_bytes, random):
    chunks = chunks_of("t", data, chunk_bytes)
    early = sorted(chunks, key=lambda _: random.random())
    limit = EARLY_CHUNKS_LIMIT
    head = early.index(chunks[0])
    ordered = early if head < limit else [chunks[0], *(chunk for chunk in early if chunk is not chunks[0])]
    assert np.array_equal(assemble(ordered)["t"], data)


@given(st.lists(payloads, min_size=1, max_size=5), st.integers(1, 64), st.randoms(use_true_random=False))
def test_tensors_may_be_interleaved(tensors, chunk_bytes, random):
    queues = [chunks_of(f"t{index}", data, chunk_bytes) for index, data in enumerate(tensors)]
    mixed = []
    while any(queues):
        mixed.append(random.choice([queue for queue in queues if queue]).pop(0))
    arrived = assemble(mixed)
    assert all(np.array_equal(arrived[f"t{index}"], data) for index, data in enumerate(tensors))


def test_chunks_of_unequal_lengths_are_fine_as_long_as_they_come_in_order():
    pieces = [b"ab", b"cdefg", b"", b"h"]
    chunks = [first(pieces[0], 4)] + [TensorChunk("t", number, pieces[number], 4) for number in (1, 2, 3)]
    assert assemble(chunks)["t"].tobytes() == b"abcdefgh"


def test_a_sender_that_does_not_know_its_count_says_which_chunk_is_the_last():
    chunks = [first(b"abcd", 0), TensorChunk("t", 1, b"efgh", 0, is_last=True)]
    assert assemble(chunks)["t"].tobytes() == b"abcdefgh"


def test_an_id_may_be_used_again_once_its_tensor_is_whole():
    assembler = Assembler(LIMITS)
    chunk = first(b"abcdefgh")
    assert all(assembler.add(chunk, assembler.announces(chunk)) for _ in range(2))


@pytest.mark.parametrize(
    "chunks",
    [
        [first(b"abcd", 2), TensorChunk("t", 0, b"abcd", 2)],
        [first(b"abcd", 2), TensorChunk("t", 2, b"efgh", 2)],
        [first(b"abcd", 2), TensorChunk("t", 1, b"efghi", 2)],
        [first(b"abcd", 2), TensorChunk("t", 1, b"efg", 2)],
        [first(b"abcd", 2), TensorChunk("t", 1, b"efgh", 3)],
        [first(b"ab", 4), TensorChunk("t", 2, b"ef", 4), TensorChunk("t", 2, b"ef", 4)],
        [first(b"ab", 4), TensorChunk("t", 2, b"e", 4)],
        [first(b"ab", 4), TensorChunk("t", 1, b"cd", 4, is_last=True)],
        [first(b"abc", 0), TensorChunk("t", 2, b"fgh", 0)],
        [first(b"abcd", 1)],
        [first(b"", 1)],
        [first(b"abcd", 2)],
        [TensorChunk("t", 1, b"abcd", 2)],
        [first(b"abcd", 2), TensorChunk("t", 4294967295, b"efgh", 2)],
    ],
)
def test_chunks_that_contradict_each_other_are_refused(chunks):
    with pytest.raises(MalformedMessage):
        assemble(chunks)


@pytest.mark.parametrize(
    "lie",
    [
        first(b"abcdefghi"),
        first(b"a", total=4294967295),
        first(b"a", total=9),
        first(b"", size_bytes="9"),
        first(b"", size_bytes="-8"),
        first(b"", size_bytes="1152921504606846976"),
        first(b"", shape="-8"),
        first(b"", shape="8,-1"),
        first(b"", shape="4294967296,4294967296"),
        first(b"", shape="1048577"),
        first(b"", shape="131073", dtype="float64"),
        first(b"", dtype="object"),
        first(b"", shape=None),
        first(b"", dtype=None),
    ],
)
def test_a_header_that_lies_is_refused_before_room_is_made(lie):
    with pytest.raises(TransferFailed):
        assemble([lie], room=no_room)


def test_a_tensor_over_the_limit_is_told_the_limit():
    with pytest.raises(TooLarge, match="at most 1048576 bytes"):
        assemble([first(shape="2097152")], room=no_room)


def test_a_dtype_that_a_receiver_does_not_accept_is_refused():
    with pytest.raises(UnsupportedTensor, match="expected one of float32"):
        assemble([first()], Limits(100, dtypes={"float32"}), room=no_room)


def test_more_dimensions_than_a_receiver_accepts_are_refused():
    with pytest.raises(TooLarge, match="3 dimensions"):
        assemble([first(shape="2,2,2")], Limits(100, dimensions=2), room=no_room)


def test_tensors_that_are_begun_and_never_finished_are_bounded():
    with pytest.raises(MalformedMessage, match="under way at once"):
        assemble(TensorChunk(str(number), 0, b"a", 2, metadata=first().metadata) for number in range(9))


def test_a_tensor_whose_first_chunk_comes_late_is_counted_once():
    chunks = [chunks_of(str(number), np.arange(4, dtype=np.uint8), 2) for number in range(8)]
    assert len(assemble([*(second for _, second in chunks), *(head for head, _ in chunks)])) == 8


def test_chunks_that_came_before_their_first_are_bounded():
    with pytest.raises(MalformedMessage, match="came before chunk 0"):
        assemble(TensorChunk("t", number, b"a", 1000) for number in range(1, EARLY_CHUNKS_LIMIT + 2))


def test_a_chunk_that_came_before_its_first_keeps_its_data_and_not_its_message():
    assembler, padding = Assembler(LIMITS), bytes(4 << 20)
    tracemalloc.start()
    try:
        for number in (1, 2, 3):
            message = TensorChunk("t", number, b"ab", 4, metadata={"k": "v" * 60_000}).encode()
            message += length_header(15, len(padding)) + padding
            chunk = TensorChunk.decode(message)
            assert assembler.needs_bytes(chunk, None) == 2
            assembler.add(chunk, None)
            del message, chunk
        assert tracemalloc.get_traced_memory()[0] < 50_000
    finally:
        tracemalloc.stop()
    assert assembler.early_bytes == 6
    head = first(b"ab", 4)
    description = assembler.announces(head)
    assert assembler.needs_bytes(head, description) == 8
    assert assembler.add(head, description)
    assert assembler.early_bytes == 0


def test_chunks_that_came_before_their_first_are_bounded_in_bytes():
    large = bytes(EARLY_BYTES_LIMIT // 2)
    assembler = Assembler(LIMITS)
    for number in (1, 2):
        assembler.add(TensorChunk("t", number, large, 9), None)
    with pytest.raises(MalformedMessage, match=f"{EARLY_BYTES_LIMIT} bytes wait"):
        assembler.add(TensorChunk("t", 3, b"a", 9), None)


def test_what_refers_to_another_way_is_no_tensor_where_there_is_none():
    with pytest.raises(BypassClosed, match="send the call again without it"):
        assemble([TensorChunk("t", total_chunks=1, metadata={**first().metadata, "shared.region": "1"})])


headers = st.fixed_dictionaries(
    {
        "shape": st.one_of(st.text(max_size=8), st.integers(-2, 40).map(str)),
        "dtype": st.sampled_from(["uint8", "int64", "x"]),
    },
    optional={"size_bytes": st.integers(-1, 100).map(str)},
)
anything = st.builds(
    TensorChunk,
    st.sampled_from("ab"),
    st.integers(0, 5),
    st.binary(max_size=12),
    st.integers(0, 5),
    st.booleans(),
    headers,
)


@given(st.lists(anything, max_size=12))
def test_no_chunks_whatever_raise_anything_but_a_refusal(chunks):
    with contextlib.suppress(TransferFailed):
        assemble(chunks)
