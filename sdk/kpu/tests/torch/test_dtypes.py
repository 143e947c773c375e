"""Every dtype of the installed torch travels bit for bit, whatever its layout, and keeps its flags."""

import warnings
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from kpu.errors import UnsupportedTensor
from kpu.tensors import Description, give, make_room, take
from kpu.tensors.dtypes import ITEM_BYTES, QUANTISED

DTYPES = sorted(
    {str(value).removeprefix("torch.") for value in vars(torch).values() if isinstance(value, torch.dtype)} - QUANTISED
)
CARRIERS = {1: torch.uint8, 2: torch.int16, 4: torch.int32, 8: torch.int64, 16: torch.complex128}

pytestmark = pytest.mark.filterwarnings("ignore:.*support is experimental")


def travel(tensor: Any) -> torch.Tensor:
    taken = take(tensor)
    description = Description.read(taken.description.metadata())
    room = make_room(description)
    room[:] = taken.raw
    return give(description, room)


def bits(tensor: torch.Tensor) -> bytes:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        plain = tensor.detach().resolve_conj().resolve_neg().view(CARRIERS[tensor.dtype.itemsize])
        return plain.contiguous().reshape(-1).view(torch.uint8).numpy().tobytes()


def of(dtype: str, shape: tuple[int, ...], raw: bytes) -> torch.Tensor:
    """A tensor whose bits are `raw`, again and again."""
    size = int(np.prod(shape)) * getattr(torch, dtype).itemsize
    filled = np.resize(np.frombuffer(raw, np.uint8), size)
    if dtype == "bool":
        filled = filled & 1
    if not size:
        return torch.empty(shape, dtype=getattr(torch, dtype))
    return torch.from_numpy(filled.copy()).view(getattr(torch, dtype)).view(shape)


def test_our_table_of_dtypes_agrees_with_torch():
    assert {name: getattr(torch, name).itemsize for name in DTYPES if name in ITEM_BYTES} == {
        name: size for name, size in ITEM_BYTES.items() if hasattr(torch, name)
    }


shapes = st.lists(st.integers(0, 4), max_size=4).map(tuple)


@given(st.sampled_from(DTYPES), shapes, st.binary(min_size=16, max_size=64))
def test_every_dtype_in_every_shape_comes_back_bit_for_bit(dtype, shape, raw):
    tensor = of(dtype, shape, raw)
    back = travel(tensor)
    assert (back.dtype, back.shape, bits(back)) == (tensor.dtype, tensor.shape, bits(tensor))


VIEWS = {
    "transposed": lambda tensor: tensor.t(),
    "strided": lambda tensor: tensor[::2, 1::2],
    "narrowed": lambda tensor: tensor[1:3, 2:],
    "expanded": lambda tensor: tensor[:1].expand(5, tensor.shape[1]),
    "one column": lambda tensor: tensor[:, 3],
    "channels last": lambda tensor: tensor.reshape(1, 2, 2, 6).contiguous(memory_format=torch.channels_last),
}


@given(st.sampled_from(DTYPES), st.sampled_from(sorted(VIEWS)), st.binary(min_size=16, max_size=64))
def test_a_view_that_is_not_compact_comes_back_compact_and_the_same(dtype, view, raw):
    if view == "channels last" and dtype not in ("float32", "int64", "bfloat16"):
        return
    tensor = VIEWS[view](of(dtype, (4, 6), raw))
    back = travel(tensor)
    assert back.is_contiguous()
    assert (back.shape, bits(back)) == (tensor.shape, bits(tensor))


@pytest.mark.parametrize("dtype", ["complex32", "complex64", "complex128"])
def test_lazy_conjugates_and_negatives_are_resolved(dtype):
    tensor = torch.randn(5, dtype=torch.complex64).to(getattr(torch, dtype))
    assert tensor.conj().is_conj()
    assert tensor.conj().imag.is_neg()
    assert bits(travel(tensor.conj())) == bits(tensor.conj())
    assert bits(travel(tensor.conj().imag)) == bits(tensor.conj().imag)


def test_a_gradient_is_wanted_on_the_other_side_too():
    assert travel(torch.ones(3, requires_grad=True)).requires_grad
    assert travel(torch.ones(3, requires_grad=True) * 2).requires_grad
    assert not travel(torch.ones(3)).requires_grad
    assert travel(torch.ones(3, requires_grad=True)).is_leaf


@pytest.mark.parametrize("requires_grad", [True, False])
def test_a_parameter_stays_one(requires_grad):
    back = travel(torch.nn.Parameter(torch.ones(3), requires_grad=requires_grad))
    assert isinstance(back, torch.nn.Parameter)
    assert back.requires_grad is requires_grad


def test_a_device_that_is_not_here_gives_way_to_the_cpu():
    description = Description((3,), "float32", device="cuda:63")
    assert give(description, make_room(description)).device.type == "cpu"


def test_a_received_tensor_can_be_written_and_computed_with():
    back = travel(torch.arange(6.0).reshape(2, 3))
    back += 1
    assert (back @ back.T).shape == (2, 2)


def test_a_compact_tensor_is_not_copied_to_be_taken():
    tensor = torch.arange(10)
    taken = take(tensor)
    assert not taken.copied
    assert taken.raw.ctypes.data == tensor.data_ptr()
    assert take(torch.arange(24).reshape(4, 6).t()).copied


def test_arrays_and_dlpack_objects_come_back_as_torch_tensors():
    class Exporter:
        def __init__(self, tensor: torch.Tensor) -> None:
            self._tensor = tensor

        def __dlpack__(self, **options: Any) -> Any:
            return self._tensor.__dlpack__(**options)

        def __dlpack_device__(self) -> Any:
            return self._tensor.__dlpack_device__()

    assert torch.equal(
        travel(np.arange(6, dtype=">i4").reshape(2, 3)), torch.arange(6, dtype=torch.int32).reshape(2, 3)
    )
    tensor = torch.randn(3, 4).to(torch.bfloat16)
    assert torch.equal(travel(Exporter(tensor)), tensor)


def fake() -> torch.Tensor:
    from torch._subclasses.fake_tensor import FakeTensorMode

    with FakeTensorMode():
        return torch.empty(3)


def quantised() -> torch.Tensor:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return torch.quantize_per_tensor(torch.ones(3), 0.5, 0, torch.qint8)


def nested() -> torch.Tensor:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return torch.nested.nested_tensor([torch.ones(2), torch.ones(3)])


@pytest.mark.filterwarnings("ignore:Sparse")
@pytest.mark.parametrize(
    ("make", "advice"),
    [
        (lambda: torch.eye(3).to_sparse(), r"\.indices\(\) and \.values\(\)"),
        (lambda: torch.eye(3).to_sparse_csr(), r"\.crow_indices\(\)"),
        (lambda: torch.eye(3).to_sparse_csc(), r"\.ccol_indices\(\)"),
        (lambda: torch.eye(4).to_sparse_bsr((2, 2)), r"\.to_dense\(\)"),
        (quantised, r"\.dequantize\(\)"),
        (lambda: torch.empty(3, device="meta"), "has no data"),
        (nested, r"unbind\(\)"),
        (fake, "not backed by one block of memory"),
        (lambda: torch.nn.LazyLinear(3).weight, "run its module once"),
    ],
)
def test_a_tensor_without_one_block_of_bytes_is_refused_with_what_to_send_instead(make, advice):
    with pytest.raises(UnsupportedTensor, match=advice):
        take(make())
