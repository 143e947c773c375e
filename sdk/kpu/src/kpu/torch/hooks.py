"""What a server does with tensors. Subclass `TensorHooks`, and name it with KPU_HOOKS=module:Class.

    class Doubling(TensorHooks):
        def process(self, tensor):
            return tensor * 2

Both hooks are called in worker threads, for different calls possibly at the same time. What they raise ends the call:
InvalidRequest reaches the client as such, anything else as an internal error of the server.
"""

import importlib
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

import numpy as np

from kpu.errors import InvalidRequest, MalformedMessage, UnsupportedTensor
from kpu.sharing.emptying import empty
from kpu.sharing.limits import SMALLEST_BYTES
from kpu.tensors import Description, parse_shape, the_torch
from kpu.tensors.description import checked_size
from kpu.tensors.dtypes import dtype_name, item_bytes

DEFAULT_SHAPE = "10,10"
DEFAULT_DTYPE = "float32"
_RANDOM = ("float16", "bfloat16", "float32", "float64", "complex32", "complex64", "complex128")


class TensorHooks:
    """Makes random tensors, and gives back what passes through as it is. `received` is what clients have sent."""

    received: Mapping[str, Any] = MappingProxyType({})

    def produce(self, index: int, parameters: Mapping[str, str]) -> Any:
        """Tensor number `index` of a call to receive_tensors."""
        del index
        return random_normal(wanted(parameters))

    def process(self, tensor: Any) -> Any:
        """What goes back for a tensor of stream_tensors."""
        return tensor

    def expected_bytes(self, parameters: Mapping[str, str]) -> int:
        """Bytes that `produce` will make, so that there is room before it starts; 0 when that is not known."""
        return wanted(parameters).size_bytes if type(self).produce is TensorHooks.produce else 0

    @property
    def echoes(self) -> bool:
        """Whether `process` does nothing at all, and needs no thread to do it in."""
        return type(self).process is TensorHooks.process


def wanted(parameters: Mapping[str, str]) -> Description:
    """What the parameters of a request ask for, checked."""
    dtype = dtype_name(parameters.get("dtype", DEFAULT_DTYPE))
    try:
        shape = parse_shape(parameters.get("shape", DEFAULT_SHAPE))
        checked_size(shape, item_bytes(dtype))
    except (MalformedMessage, UnsupportedTensor) as error:
        raise InvalidRequest(f"the parameters of the request are wrong: {error}") from error
    if dtype not in _RANDOM:
        raise InvalidRequest(f'dtype is "{dtype}", but random tensors are made of {", ".join(_RANDOM)}')
    return Description(shape, dtype, device=parameters.get("device", "cpu"))


def random_normal(description: Description) -> Any:
    """A tensor of the standard normal distribution."""
    torch = the_torch()
    try:
        if torch is None:
            return _with_numpy(description)
        # complex32 has no generator of its own.
        dtype = torch.complex64 if description.dtype == "complex32" else getattr(torch, description.dtype)
        if _goes_through_shared_memory(description):
            made = torch.randn(description.shape, out=empty(description.shape, dtype))
        else:
            made = torch.randn(description.shape, dtype=dtype, device=description.device)
        return made.to(getattr(torch, description.dtype))
    except (RuntimeError, AssertionError, TypeError, ValueError, ImportError) as error:
        first_line = str(error).partition("\n")[0]
        raise InvalidRequest(
            f"no random tensor of {description.dtype} on {description.device}: {first_line}"
        ) from error


def _goes_through_shared_memory(description: Description) -> bool:
    """A client of this host then gets what is made without a copy, and another loses nothing."""
    return description.device == "cpu" and description.size_bytes >= SMALLEST_BYTES


def load_hooks(reference: str) -> TensorHooks:
    """The hooks that `module:Class` names."""
    module_name, _, class_name = reference.partition(":")
    if not module_name or not class_name:
        raise ValueError(f'KPU_HOOKS is "{reference}", expected module:Class')
    found = getattr(importlib.import_module(module_name), class_name)
    made = found() if callable(found) else None
    if not isinstance(made, TensorHooks):
        raise ValueError(f'KPU_HOOKS is "{reference}", which is not a subclass of kpu.torch.hooks.TensorHooks')
    return made


def _with_numpy(description: Description) -> Any:
    random = np.random.Generator(np.random.SFC64())
    if description.device != "cpu":
        raise InvalidRequest(f'device is "{description.device}", but this server has no torch and so the CPU only')
    if description.dtype in ("float32", "float64"):
        dtype = np.dtype(description.dtype).type
        room = empty(description.shape, dtype) if _goes_through_shared_memory(description) else None
        return random.standard_normal(description.shape, dtype, out=room)
    if description.dtype in ("complex64", "complex128"):
        parts = random.standard_normal((*description.shape, 2)) * np.sqrt(0.5)
        return parts.view(np.complex128)[..., 0].astype(description.dtype)
    if description.dtype == "float16":
        return random.standard_normal(description.shape, dtype=np.float32).astype(np.float16)
    raise InvalidRequest(f'dtype is "{description.dtype}", but this server has no torch; ask for float32')
