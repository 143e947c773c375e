"""The part that needs numpy alone: taking an array apart and putting one together.

Numpy has no bfloat16 and no float8. Where the package `ml_dtypes` is installed, arrays of its dtypes are taken and
given; elsewhere such a tensor is refused with a sentence.
"""

import importlib
import importlib.util
from functools import cache, lru_cache, partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kpu.errors import UnsupportedTensor
from kpu.tensors.compacting import LARGE_BYTES, Fetch
from kpu.tensors.description import Description
from kpu.tensors.dtypes import ITEM_BYTES

_OWN_KINDS = frozenset("biufc")
_HINTS = {
    "O": "it holds Python objects, which would have to be pickled; send an array of numbers",
    "M": 'it holds dates; send .view("int64")',
    "m": 'it holds durations; send .view("int64")',
    "S": "it holds text; send an array of numbers",
    "U": "it holds text; send an array of numbers",
}


def take_apart(array: NDArray[Any]) -> tuple[Description, NDArray[np.uint8] | None, bool, Fetch | None]:
    """Description and compact little-endian bytes of an array, and whether they are a copy.

    Of a large one that must be copied there are no bytes yet, but a way to fetch them.
    """
    description = Description(shape=array.shape, dtype=_dtype_name(array.dtype))
    ordered = array.dtype.newbyteorder("<")
    is_ready = array.flags.c_contiguous and array.dtype == ordered
    if not is_ready and array.nbytes >= LARGE_BYTES:
        return description, None, False, partial(_compact, array, ordered)
    compact = np.ascontiguousarray(array, dtype=ordered)
    return description, compact.reshape(-1).view(np.uint8), compact.size > 0 and not is_ready, None


def refuse_what_has_no_name(array: NDArray[Any]) -> None:
    if isinstance(array, np.ma.MaskedArray):
        raise UnsupportedTensor("a masked array has a mask beside its data; send .filled(), or .data and .mask")
    _dtype_name(array.dtype)


def put_together(description: Description, raw: NDArray[np.uint8]) -> NDArray[Any]:
    """An array that lies in `raw`."""
    return raw.view(_numpy_dtype(description.dtype)).reshape(description.shape)


def has_dtype(name: str) -> bool:
    try:
        _numpy_dtype(name)
    except UnsupportedTensor:
        return False
    return True


def _compact(array: NDArray[Any], ordered: np.dtype[Any], memory: NDArray[np.uint8]) -> None:
    np.copyto(memory.view(ordered).reshape(array.shape), array)


@lru_cache
def _dtype_name(dtype: np.dtype[Any]) -> str:
    name = dtype.name
    known = name in ITEM_BYTES and dtype.itemsize == ITEM_BYTES[name]
    if known and (dtype.kind in _OWN_KINDS or dtype == _of_ml_dtypes(name)):
        return name
    if dtype.names is not None:
        hint = "it has named fields; send each field as an array of its own"
    else:
        hint = _HINTS.get(dtype.kind, 'no other side knows that dtype; send .astype("float64") or the like')
    raise UnsupportedTensor(f"a numpy array of dtype {dtype} cannot be sent: {hint}")


@cache
def _numpy_dtype(name: str) -> np.dtype[Any]:
    extra = _of_ml_dtypes(name)
    if extra is not None:
        return extra
    try:
        found = np.dtype(name)
    except TypeError:
        found = None
    if found is None or found.kind not in _OWN_KINDS or found.itemsize != ITEM_BYTES.get(name):
        raise UnsupportedTensor(f"numpy has no dtype {name}; install torch or ml_dtypes, or ask for float32")
    return found


@cache
def _of_ml_dtypes(name: str) -> np.dtype[Any] | None:
    if name not in ITEM_BYTES or importlib.util.find_spec("ml_dtypes") is None:
        return None
    scalar = getattr(importlib.import_module("ml_dtypes"), name, None)
    if scalar is None or np.dtype(scalar).itemsize != ITEM_BYTES[name]:
        return None
    return np.dtype(scalar)
