"""Tensors that lie in shared memory from the start."""

from collections.abc import Sequence
from typing import Any, cast

import numpy as np

from kpu.sharing.located import allocate
from kpu.tensors import Description, give, make_room
from kpu.tensors.dtypes import dtype_name


def empty(shape: int | Sequence[int], dtype: Any = "float32") -> Any:
    """A tensor, torch's where torch is installed and else numpy's, that a server of this host is given without a copy.

    It is used like any other, its memory is not initialised, and no server need run. What is sent is the memory itself:
    the receiver sees what is written to it later, until one side drops the tensor. Send a `clone()` for a snapshot.
    Where the system has no shared memory to give, the tensor lies in ordinary memory and is copied when it is sent.
    """
    sizes = (shape,) if isinstance(shape, int) else tuple(int(size) for size in shape)
    if any(size < 0 for size in sizes):
        raise ValueError(f"shape is {list(sizes)}, expected no dimension below 0")
    description = Description(sizes, _name(dtype))
    memory = allocate(description.size_bytes)
    return give(description, make_room(description) if memory is None else memory)


def _name(dtype: Any) -> str:
    """Of a torch dtype, of a numpy one, or of a name that either would understand."""
    is_numpy = isinstance(dtype, type | np.dtype)
    return dtype_name(np.dtype(cast("type", dtype)).name if is_numpy else str(dtype))
