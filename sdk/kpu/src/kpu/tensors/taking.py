"""Tensors come in: whatever people hold becomes a description and a flat view of bytes."""

from dataclasses import dataclass
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from kpu.errors import UnsupportedTensor
from kpu.tensors import numpy_arrays, torch_tensors
from kpu.tensors.description import Description


@dataclass(frozen=True, slots=True)
class Taken:
    """A tensor ready to travel. `raw` is flat, compact, and views the sender's memory unless it had to be copied."""

    description: Description
    raw: NDArray[np.uint8]
    copied: bool

    @property
    def view(self) -> memoryview:
        return self.raw.data


def take(tensor: object) -> Taken:
    """Any torch tensor, numpy array or DLPack object as bytes, or a sentence on what to send instead."""
    refuse_unsupported(tensor)
    if torch_tensors.is_torch_tensor(tensor):
        return Taken(*torch_tensors.take_apart(tensor))
    if isinstance(tensor, np.ndarray | np.generic):
        array: NDArray[Any] = np.asanyarray(cast("NDArray[Any]", tensor))
        return Taken(*numpy_arrays.take_apart(array))
    return _take_from_dlpack(tensor)


def refuse_unsupported(tensor: object) -> None:
    """Say now what `take` would say of a tensor's kind, without touching its bytes."""
    if torch_tensors.is_torch_tensor(tensor):
        torch_tensors.refuse_what_has_no_bytes(tensor)
    elif isinstance(tensor, np.ndarray | np.generic):
        numpy_arrays.refuse_what_has_no_name(np.asanyarray(cast("NDArray[Any]", tensor)))
    elif not hasattr(tensor, "__dlpack__"):
        raise UnsupportedTensor(
            f"a {type(tensor).__name__} is not a tensor; send a torch tensor, a numpy array or an object with "
            "__dlpack__"
        )


def _take_from_dlpack(capsule_maker: Any) -> Taken:
    torch = torch_tensors.the_torch()
    try:
        imported = np.from_dlpack(capsule_maker) if torch is None else torch.from_dlpack(capsule_maker)
    except (RuntimeError, TypeError, ValueError, BufferError, AttributeError) as error:
        raise UnsupportedTensor(f"a {type(capsule_maker).__name__} cannot be read through DLPack: {error}") from error
    return take(imported)
