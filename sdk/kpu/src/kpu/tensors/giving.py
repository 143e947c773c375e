"""Tensors go out: room is made once, bytes land in it, and the tensor that people get lies in that very room."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from kpu.errors import TooLarge
from kpu.tensors import numpy_arrays, torch_tensors
from kpu.tensors.description import Description

# Vector units like whole cache lines. Numpy aligns less, but asks for huge pages, which torch does not.
_ALIGNMENT = 64


def make_room(description: Description) -> NDArray[np.uint8]:
    """Memory for the bytes of a tensor, of the kind its device can fetch from."""
    torch = torch_tensors.the_torch()
    size = description.size_bytes
    try:
        if size and torch is not None and torch_tensors.fetches_from_pinned(torch, description.device):
            return torch_tensors.pinned_room(torch, size)
        return _aligned(size)
    except (MemoryError, RuntimeError) as error:
        raise TooLarge(f"there is no memory for a tensor of {size} bytes, shape {list(description.shape)}") from error


def can_give(description: Description) -> bool:
    """Whether there is a tensor of that dtype here. Its bytes can be kept and sent on in any case."""
    return hasattr(torch_tensors.the_torch(), description.dtype) or numpy_arrays.has_dtype(description.dtype)


def give(description: Description, raw: NDArray[np.uint8]) -> Any:
    """The tensor whose bytes are `raw`: torch's where torch is installed, else numpy's. It lies in `raw`."""
    torch = torch_tensors.the_torch()
    if torch is None or not hasattr(torch, description.dtype):
        return numpy_arrays.put_together(description, raw)
    return torch_tensors.put_together(torch, description, raw)


def _aligned(size: int) -> NDArray[np.uint8]:
    padded = np.empty(size + _ALIGNMENT, np.uint8)
    start = -padded.ctypes.data % _ALIGNMENT
    return padded[start : start + size]
