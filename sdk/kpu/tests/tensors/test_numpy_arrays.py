"""Numpy arrays come in and go out bit for bit, or are refused with what to send instead."""

import sys
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from kpu.errors import UnsupportedTensor
from kpu.tensors import Description, can_give, give, item_bytes, make_room, numpy_arrays, take, the_torch

NUMPY_DTYPES = [np.dtype(code) for code in "?bhilqBHILQefdFD"]


def travel(tensor: object) -> np.ndarray[Any, Any]:
    """Taken apart, described as on the wire, and put together again."""
    taken = take(tensor)
    description = Description.read(taken.description.metadata())
    room = make_room(description)
    room[:] = taken.raw
    return np.asarray(give(description, room))


def bits(array: np.ndarray[Any, Any]) -> tuple[Any, ...]:
    return array.shape, array.dtype.newbyteorder("<"), array.astype(array.dtype.newbyteorder("<")).tobytes()


@given(
    st.sampled_from(NUMPY_DTYPES).flatmap(
        lambda dtype: arrays.arrays(dtype, arrays.array_shapes(min_dims=0, min_side=0))
    )
)
def test_every_array_comes_back_bit_for_bit(array):
    assert bits(travel(array)) == bits(array)


@given(st.binary(min_size=16, max_size=16), st.sampled_from(["float16", "float32", "float64", "complex128"]))
def test_the_payload_of_a_nan_survives(raw, dtype):
    array = np.frombuffer(raw, dtype)
    assert travel(array).tobytes() == raw


@pytest.mark.parametrize(
    "view",
    [
        lambda a: a.T,
        lambda a: a[::2, ::-1],
        lambda a: np.broadcast_to(a[0], (5, 6)),
        lambda a: a[1:2, 3],
        lambda a: np.asfortranarray(a),
        lambda a: a.astype(">f8"),
        lambda a: a.astype(">i2")[:, ::3],
    ],
)
def test_an_array_that_does_not_lie_compact_is_compacted(view):
    array = view(np.arange(24.0).reshape(4, 6))
    assert np.array_equal(travel(array), array)


def test_a_compact_array_is_not_copied_to_be_taken():
    array = np.arange(10)
    taken = take(array)
    assert not taken.copied
    assert np.shares_memory(taken.raw, array)


def test_a_compacted_array_says_that_it_was_copied():
    assert take(np.arange(24).reshape(4, 6).T).copied


@pytest.mark.parametrize(
    "view",
    [
        lambda a: a.T,
        lambda a: a[::-1],
        lambda a: np.broadcast_to(a[0], (1000, 1000)),
        lambda a: a.astype(">f4"),
        lambda a: a.astype(">i4")[:, ::2],
    ],
)
def test_a_large_array_that_does_not_lie_compact_is_copied_when_its_bytes_are_asked_for(view):
    array = view(np.arange(1e6, dtype=np.float32).reshape(1000, 1000))
    taken = take(array)
    assert taken.on_host is None
    assert not taken.copied
    assert taken.raw.tobytes() == array.astype(array.dtype.newbyteorder("<")).tobytes()
    assert taken.copied


def test_what_is_given_lies_in_the_room_that_was_made():
    description = Description((2, 3), "float32")
    room = make_room(description)
    given_tensor = np.asarray(give(description, room))
    room[:] = 0
    assert np.shares_memory(given_tensor, room)
    assert given_tensor.flags.writeable


def test_room_starts_at_a_cache_line():
    assert all(make_room(Description((size,), "uint8")).ctypes.data % 64 == 0 for size in (1, 63, 1000, 1 << 21))


def test_a_scalar_of_numpy_is_a_tensor_without_dimensions():
    assert travel(np.float32(1.5)) == np.float32(1.5)
    assert travel(np.float32(1.5)).shape == ()


@pytest.mark.parametrize(
    ("array", "advice"),
    [
        (np.array([None, "x"], dtype=object), "pickled"),
        (np.zeros(2, dtype=[("a", "i4"), ("b", "f8")]), "each field"),
        (np.array(["text"]), "text"),
        (np.array([b"text"]), "text"),
        (np.zeros(2, "M8[s]"), "int64"),
        (np.zeros(2, "m8[s]"), "int64"),
        (np.zeros(2, np.longdouble), "float64"),
        (np.ma.array([1, 2], mask=[False, True]), "filled"),
    ],
)
def test_an_array_that_cannot_travel_is_refused_with_what_to_send_instead(array, advice):
    with pytest.raises(UnsupportedTensor, match=advice):
        take(array)


@pytest.mark.parametrize("thing", [[1.0, 2.0], 3.5, "tensor", None, b"raw", {"a": 1}])
def test_what_is_no_tensor_is_refused_by_its_type(thing):
    with pytest.raises(UnsupportedTensor, match=f"a {type(thing).__name__} is not a tensor"):
        take(thing)


class Exporter:
    """An object that speaks DLPack and nothing else."""

    def __init__(self, array: np.ndarray[Any, Any]) -> None:
        self._array = array

    def __dlpack__(self, **options: Any) -> Any:
        return self._array.__dlpack__(**options)

    def __dlpack_device__(self) -> Any:
        return self._array.__dlpack_device__()


def test_whatever_speaks_dlpack_is_a_tensor():
    array = np.arange(6, dtype=np.int32).reshape(2, 3)
    assert bits(travel(Exporter(array))) == bits(array)


def test_an_exporter_that_breaks_its_promise_is_refused():
    class Broken:
        def __dlpack__(self, **_: Any) -> Any:
            raise BufferError("the memory is elsewhere")

        def __dlpack_device__(self) -> tuple[int, int]:
            return (1, 0)

    with pytest.raises(UnsupportedTensor, match="DLPack"):
        take(Broken())


@pytest.mark.skipif("ml_dtypes" in sys.modules, reason="numpy has these dtypes here")
@pytest.mark.parametrize("dtype", ["bfloat16", "float8_e4m3fn", "complex32", "uint4"])
def test_a_dtype_that_numpy_lacks_has_bytes_and_no_array(dtype):
    description = Description((2,), dtype)
    room = make_room(description)
    room[:] = 7
    with pytest.raises(UnsupportedTensor, match="install torch"):
        numpy_arrays.put_together(description, room)
    if the_torch() is None:
        assert not can_give(description)
        with pytest.raises(UnsupportedTensor, match="install torch"):
            give(description, room)


def test_what_was_taken_can_be_taken_again():
    taken = take(np.arange(3))
    assert take(taken) is taken


def test_an_array_is_taken_while_another_thread_is_loading_torch(monkeypatch):
    monkeypatch.setitem(sys.modules, "torch", ModuleType("torch"))
    assert take(np.ones(3)).description == Description((3,), "float64")
    with pytest.raises(UnsupportedTensor, match="is unknown"):
        item_bytes("float31")
