"""Tensors that lie in shared memory from the start."""

from collections.abc import Iterable, Sequence
from operator import index
from typing import Any, cast

import numpy as np

from kpu.sharing.located import allocate
from kpu.tensors import Description, give, make_room
from kpu.tensors.description import checked_size
from kpu.tensors.dtypes import ITEM_BYTES, dtype_name, item_bytes


def empty(shape: int | Sequence[int], dtype: Any = "float32") -> Any:
    """A tensor, torch's where torch is installed and else numpy's, that a server of this host is given without a copy.

    It is used like any other, its memory is not initialised, and no server need run. What is sent is the memory itself:
    the receiver sees what is written to it later, until one side drops the tensor. Send a `clone()` for a snapshot.
    Where the system has no shared memory to give, the tensor lies in ordinary memory and is copied when it is sent.
    """
    sizes, name = _sizes(shape), _name(dtype)
    if any(size < 0 for size in sizes):
        raise ValueError(f"shape is {list(sizes)}, expected no dimension below 0")
    checked_size(sizes, item_bytes(name))
    description = Description(sizes, name)
    memory = allocate(description.size_bytes)
    return give(description, make_room(description) if memory is None else memory)


def _sizes(shape: Any) -> tuple[int, ...]:
    try:
        return tuple(map(index, shape if isinstance(shape, Iterable) else (shape,)))  # pyright: ignore[reportUnknownArgumentType]
    except TypeError:
        raise TypeError(f"shape is {shape!r}, expected whole numbers, such as (20, 20)") from None


def _name(dtype: Any) -> str:
    """Of a torch dtype, of a numpy one, or of a name that either would understand; torch's meaning comes first."""
    if isinstance(dtype, type | np.dtype):
        return dtype_name(np.dtype(cast("type", dtype)).name)
    name = dtype_name(str(dtype))
    return name if name in ITEM_BYTES else _numpy_name(name)


def _numpy_name(text: str) -> str:
    """Such as "f4"; what numpy does not understand either stays as it is."""
    try:
        name = np.dtype(text).name
    except (TypeError, ValueError):
        return text
    return name if name in ITEM_BYTES else text
