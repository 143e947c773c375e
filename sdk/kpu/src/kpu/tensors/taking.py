"""Tensors come in: whatever people hold becomes a description and a flat view of bytes."""

from dataclasses import dataclass
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from kpu.errors import UnsupportedTensor
from kpu.tensors import numpy_arrays, torch_tensors
from kpu.tensors.compacting import Fetch
from kpu.tensors.description import Description
from kpu.tensors.giving import make_room


@dataclass(slots=True, eq=False)
class Taken:
    """A tensor ready to travel. `raw` is flat, compact, and views the sender's memory unless it had to be copied.

    The bytes of one on a device, and of a large one that does not lie compact, come when they are asked for, or go
    straight to where they are wanted.
    """

    description: Description
    on_host: NDArray[np.uint8] | None
    copied: bool
    fetch: Fetch | None = None

    @property
    def raw(self) -> NDArray[np.uint8]:
        if self.on_host is None:
            self.on_host, self.copied = make_room(self.description), True
            self.fetch_into(self.on_host)
        return self.on_host

    @property
    def view(self) -> memoryview:
        return self.raw.data

    @property
    def size_bytes(self) -> int:
        return self.description.size_bytes

    def lies_in(self, memory: NDArray[np.uint8]) -> bool:
        return self.on_host is not None and bool(np.may_share_memory(self.on_host, memory))

    def fetch_into(self, memory: NDArray[np.uint8]) -> None:
        """Copy the bytes to memory of the host that has room for them."""
        if self.fetch is None:
            raise ValueError("the bytes of the tensor are here, expected one whose bytes are to be fetched")
        self.fetch(memory)


def take(tensor: object) -> Taken:
    """Any torch tensor, numpy array or DLPack object as bytes, or a sentence on what to send instead."""
    if isinstance(tensor, Taken):
        return tensor
    refuse_unsupported(tensor)
    if torch_tensors.is_torch_tensor(tensor):
        return Taken(*torch_tensors.take_apart(tensor))
    if isinstance(tensor, np.ndarray | np.generic):
        array: NDArray[Any] = np.asanyarray(cast("NDArray[Any]", tensor))
        return Taken(*numpy_arrays.take_apart(array))
    return _take_from_dlpack(tensor)


def refuse_unsupported(tensor: object) -> None:
    """Say now what `take` would say of a tensor's kind, without touching its bytes."""
    if isinstance(tensor, Taken):
        return
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
