"""Tensors that lie in shared memory from the start, made without any server."""

import gc
import os
import resource
from pathlib import Path

import numpy as np
import pytest

from kpu.client import empty
from kpu.errors import UnsupportedTensor
from kpu.sharing import located
from kpu.sharing.located import locate
from kpu.tensors import take


def _lies_in_shared_memory(tensor: object) -> bool:
    return locate(take(tensor).raw) is not None


def _mapped_regions() -> int:
    return Path("/proc/self/maps").read_text().count("memfd:kpu-tensor")


@pytest.mark.parametrize("shape", [5, (5,), [2, 3], (2, 3, 4), (1,), (), np.array([2, 3])])
def test_it_has_the_shape_that_was_asked_for(shape):
    tensor = empty(shape, "float32")
    expected = (shape,) if isinstance(shape, int) else tuple(shape)
    assert tuple(tensor.shape) == expected
    assert _lies_in_shared_memory(tensor)


@pytest.mark.parametrize(
    "dtype", ["float32", "torch.float32", np.float32, np.dtype("float32"), float, "bool", "int64", "f4", "<i2", "?"]
)
def test_it_has_the_dtype_that_was_asked_for(dtype):
    made = np.asarray(empty((2, 2), dtype))
    wanted = dtype.removeprefix("torch.") if isinstance(dtype, str) else dtype
    assert made.dtype == np.dtype(wanted)


def test_it_is_written_and_read_like_any_other():
    tensor = empty((3, 4), "int32")
    tensor[:] = 7
    tensor[1, 2] = 9
    assert int(tensor.sum()) == 11 * 7 + 9


@pytest.mark.parametrize("shape", [0, (0,), (3, 0, 2)])
def test_one_without_elements_keeps_its_shape(shape):
    assert tuple(empty(shape, "float32").shape) == ((shape,) if isinstance(shape, int) else shape)


def test_parts_and_views_of_it_lie_there_too_and_keep_the_memory():
    before = _mapped_regions()
    part = empty((100, 100), "float32")[10:20].reshape(-1)
    gc.collect()
    assert _lies_in_shared_memory(part)
    part[:] = 3
    assert float(part.sum()) == 3000
    del part
    gc.collect()
    assert _mapped_regions() == before


def test_a_tensor_of_ordinary_memory_is_not_taken_for_one():
    kept = empty((1000,), "uint8")
    assert not _lies_in_shared_memory(np.zeros(1000, np.uint8))
    assert _lies_in_shared_memory(kept)


def test_memory_and_descriptor_go_with_the_tensor():
    before = (_mapped_regions(), len(os.listdir("/proc/self/fd")))
    for _ in range(50):
        empty((1 << 20,), "uint8")[:] = 1
    gc.collect()
    assert (_mapped_regions(), len(os.listdir("/proc/self/fd"))) == before


def test_a_process_that_may_open_few_files_keeps_most_of_them_for_itself(monkeypatch):
    monkeypatch.setattr(resource, "getrlimit", lambda _: (40, 40))
    assert len(located._regions) == 0
    tensors = [empty((100,), "uint8") for _ in range(20)]
    assert [_lies_in_shared_memory(tensor) for tensor in tensors] == [True] * 10 + [False] * 10
    tensors[-1][:] = 1
    assert int(tensors[-1].sum()) == 100


def test_a_shape_or_a_dtype_that_makes_no_sense_is_refused():
    with pytest.raises(ValueError, match="no dimension below 0"):
        empty((2, -1), "float32")
    with pytest.raises(TypeError, match=r"shape is \(2.5, 3\), expected whole numbers"):
        empty((2.5, 3), "float32")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="beyond what can be addressed"):
        empty((1 << 40, 1 << 40), "float32")
    with pytest.raises(UnsupportedTensor, match='"float31" is unknown'):
        empty((2,), "float31")
    with pytest.raises(UnsupportedTensor, match='"S4" is unknown'):
        empty((2,), "S4")
