"""What a first chunk says of its tensor is written one way, read in several, and believed only when it adds up."""

import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kpu.errors import MalformedMessage, TransferFailed, UnsupportedTensor
from kpu.tensors import Description, parse_shape
from kpu.tensors.dtypes import ITEM_BYTES

shapes = st.lists(st.integers(0, 2**15), max_size=4).map(tuple)
dtypes = st.sampled_from(sorted(ITEM_BYTES))


@given(shapes, dtypes, st.sampled_from(["cpu", "cuda:0", "cuda:15", "mps"]), st.booleans())
def test_what_is_written_is_read_back(shape, dtype, device, is_parameter):
    described = Description(shape, dtype, device, requires_grad=dtype == "float32", is_parameter=is_parameter)
    assert Description.read(described.metadata()) == described


@pytest.mark.parametrize(
    ("text", "shape"),
    [
        ("[2, 3]", (2, 3)),
        ("(2, 3)", (2, 3)),
        ("2,3", (2, 3)),
        (" 2 , 3 ", (2, 3)),
        ("(3,)", (3,)),
        ("7", (7,)),
        ("[]", ()),
        ("()", ()),
        ("", ()),
        ("0,5", (0, 5)),
    ],
)
def test_a_shape_may_be_spelled_in_several_ways(text, shape):
    assert parse_shape(text) == shape


@pytest.mark.parametrize(
    "text",
    [
        "-1",
        "2,-3",
        "2;3",
        "[2, 3",
        "2, 3]",
        "(2, 3]",
        "a",
        "2.0",
        "1e3",
        "2,,3",
        "\u0661",
        "0x10",
        "[[2]]",
        ",",
        "9" * 20,
    ],
)
def test_a_shape_that_is_none_is_refused_with_what_was_expected(text):
    with pytest.raises(MalformedMessage, match="whole numbers"):
        parse_shape(text)


@pytest.mark.parametrize("dtype", ["torch.float32", "float32", "float", " float32 "])
def test_a_dtype_may_be_spelled_as_torch_prints_it_or_without_its_prefix(dtype):
    assert Description.read({"shape": "2", "dtype": dtype}).dtype == "float32"


@pytest.mark.parametrize(
    "dtype", ["float33", "", "os", "__class__", "torch.nn", "object", "qint8", "torch.torch.uint8"]
)
def test_a_dtype_that_is_none_is_refused(dtype):
    with pytest.raises(UnsupportedTensor, match="is unknown"):
        Description.read({"shape": "2", "dtype": dtype})


@pytest.mark.parametrize("missing", ["shape", "dtype"])
def test_a_tensor_that_does_not_declare_itself_is_refused_because_nothing_is_unpickled(missing):
    metadata = {"shape": "2", "dtype": "float32"}
    del metadata[missing]
    with pytest.raises(MalformedMessage, match="pickled tensors are not read"):
        Description.read(metadata)


@pytest.mark.parametrize("size", ["7", "9", "-8", "8.0", "", "0x8", "1" * 400])
def test_a_size_that_contradicts_shape_and_dtype_is_refused(size):
    with pytest.raises(MalformedMessage, match="takes 8 bytes"):
        Description.read({"shape": "2", "dtype": "float32", "size_bytes": size})


@pytest.mark.parametrize(
    "shape", ["9223372036854775807", "4294967296,4294967296", "0,9223372036854775807,8", "1," * 65]
)
def test_a_shape_beyond_what_can_be_addressed_is_refused_without_counting_it_out(shape):
    with pytest.raises(MalformedMessage):
        Description.read({"shape": shape, "dtype": "float32"})


@pytest.mark.parametrize(
    "extra",
    [
        {"device": "cuda:0; rm"},
        {"device": ""},
        {"requires_grad": "maybe"},
        {"parameter": "1"},
        {"dtype": "int32", "requires_grad": "true"},
        {"shape": " " * 5000},
    ],
)
def test_flags_and_devices_that_make_no_sense_are_refused(extra):
    with pytest.raises(MalformedMessage):
        Description.read({"shape": "2", "dtype": "float32", **extra})


@given(st.dictionaries(st.sampled_from(["shape", "dtype", "size_bytes", "device", "requires_grad"]), st.text()))
def test_no_metadata_raises_anything_but_a_refusal(metadata):
    with contextlib.suppress(TransferFailed):
        Description.read(metadata)
