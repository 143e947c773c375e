"""The part that needs torch: taking a torch tensor apart and putting one together.

Torch is optional and heavy, so it is imported when a tensor is first given back, and never just to look at what came
in: an object can only be a torch tensor when torch is loaded already.
"""

import importlib
import importlib.util
import sys
from functools import cache, partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kpu.errors import UnsupportedTensor
from kpu.tensors.compacting import LARGE_BYTES, Fetch
from kpu.tensors.description import Description
from kpu.tensors.dtypes import PREFIX
from kpu.tensors.pinning import pinning

_DENSE_HINTS = {
    "torch.sparse_coo": "send .to_dense(), or its .indices() and .values() as two tensors",
    "torch.sparse_csr": "send .to_dense(), or .crow_indices(), .col_indices() and .values() as three tensors",
    "torch.sparse_csc": "send .to_dense(), or .ccol_indices(), .row_indices() and .values() as three tensors",
}


@cache
def the_torch() -> Any | None:
    """The torch of this process, or None where it is not installed."""
    if importlib.util.find_spec("torch") is None:
        return None
    return importlib.import_module("torch")


def is_torch_tensor(candidate: object) -> bool:
    """While another thread is still loading torch, nobody has a tensor of it."""
    tensor_class = getattr(sys.modules.get("torch"), "Tensor", None)
    return tensor_class is not None and isinstance(candidate, tensor_class)


def is_on_host(candidate: Any) -> bool:
    """Whether an object takes memory of this host: all but tensors of a device do."""
    return not is_torch_tensor(candidate) or bool(candidate.is_cpu)


def lies_compact(tensor: Any) -> bool:
    """Whether its elements lie one after the other, as they are."""
    return bool(tensor.is_contiguous() and not tensor.is_conj() and not tensor.is_neg())


def take_apart(tensor: Any) -> tuple[Description, NDArray[np.uint8] | None, bool, Fetch | None]:
    """Description and compact bytes of a tensor, and whether they are a copy. The bytes keep its memory alive.

    Of one on a CUDA device, and of a large one that must be copied, there are no bytes yet, but a way to fetch them.
    """
    torch: Any = sys.modules["torch"]
    description = Description(
        shape=tuple(tensor.shape),
        dtype=str(tensor.dtype).removeprefix(PREFIX),
        device=str(tensor.device),
        requires_grad=bool(tensor.requires_grad),
        is_parameter=isinstance(tensor, torch.nn.Parameter),
    )
    if tensor.numel() == 0:
        return description, np.empty(0, np.uint8), False, None
    if tensor.is_cpu and tensor.nbytes >= LARGE_BYTES and not lies_compact(tensor):
        return description, None, False, partial(_compact, torch, tensor.detach())
    try:
        compact = _carrier_view(torch, tensor.detach().resolve_conj().resolve_neg()).contiguous()
        flat = compact.reshape(-1).view(torch.uint8)
        if tensor.is_cuda:
            stream = torch.cuda.current_stream(tensor.device)
            return description, None, False, partial(_fetch, torch, flat, stream)
        raw: NDArray[np.uint8] = flat.cpu().numpy()
    except (RuntimeError, TypeError, NotImplementedError) as error:
        raise UnsupportedTensor(f"{_called(tensor)} cannot be read as bytes: {_first_line(error)}") from error
    return description, raw, raw.ctypes.data != tensor.data_ptr(), None


def put_together(torch: Any, description: Description, raw: NDArray[np.uint8]) -> Any:
    """A tensor that lies in `raw`, moved to its device where this process has that device."""
    tensor = torch.from_numpy(raw).view(getattr(torch, description.dtype)).view(description.shape)
    if description.device != "cpu" and has_device(torch, description.device):
        tensor = _to_device(torch, tensor, description.device, raw)
    if description.is_parameter:
        return torch.nn.Parameter(tensor, requires_grad=description.requires_grad)
    return tensor.requires_grad_() if description.requires_grad else tensor


def has_device(torch: Any, name: str) -> bool:
    """Whether a tensor can be put on the device of that name here."""
    kind, _, index = name.partition(":")
    backend = getattr(torch, kind, None)
    if kind not in ("cuda", "xpu", "mps") or backend is None or not backend.is_available():
        return False
    return not index or int(index) < backend.device_count()


def fetches_from_pinned(torch: Any, device: str) -> bool:
    return device.startswith("cuda") and has_device(torch, device)


def pinned_room(torch: Any, size_bytes: int) -> NDArray[np.uint8]:
    """Memory from which a device can fetch by itself."""
    return torch.empty(size_bytes, dtype=torch.uint8, pin_memory=True).numpy()


def refuse_what_has_no_bytes(tensor: Any) -> None:
    torch: Any = sys.modules["torch"]
    kind = tensor.__class__.__name__
    if torch.nn.parameter.is_lazy(tensor):
        raise UnsupportedTensor(f"a {kind} has no shape yet; run its module once, then send it")
    if tensor.is_nested:
        raise UnsupportedTensor("a nested tensor has no one shape; send its parts, tensor.unbind(), as tensors")
    name = _called(tensor)
    if tensor.__class__.__torch_dispatch__ is not torch.Tensor.__torch_dispatch__:
        raise UnsupportedTensor(f"{name} is not backed by one block of memory; send an ordinary tensor made from it")
    if tensor.is_quantized:
        raise UnsupportedTensor(
            f"{name} is quantised; send .dequantize(), or .int_repr() with its scale and zero point"
        )
    if tensor.is_meta:
        raise UnsupportedTensor(f"{name} is on the meta device and has no data; send a tensor that has")
    if tensor.layout != torch.strided:
        hint = _DENSE_HINTS.get(str(tensor.layout), "send .to_dense()")
        raise UnsupportedTensor(f"{name} has the layout {tensor.layout}; {hint}")


def _carrier_view(torch: Any, tensor: Any) -> Any:
    """The same bits as a dtype for which torch can copy: some dtypes have storage and next to no operations."""
    by_size = {1: torch.uint8, 2: torch.int16, 4: torch.int32, 8: torch.int64, 16: torch.complex128}
    return tensor.view(by_size[tensor.dtype.itemsize])


def _compact(torch: Any, tensor: Any, memory: NDArray[np.uint8]) -> None:
    """Lazy conjugates and negatives are known to the few dtypes that have them, and not to what carries the others."""
    is_lazy = tensor.is_conj() or tensor.is_neg()
    source = tensor if is_lazy else _carrier_view(torch, tensor)
    try:
        torch.from_numpy(memory).view(source.dtype).view(tensor.shape).copy_(source)
    except (RuntimeError, TypeError, NotImplementedError) as error:
        raise UnsupportedTensor(f"{_called(tensor)} cannot be read as bytes: {_first_line(error)}") from error


def _fetch(torch: Any, flat: Any, stream: Any, memory: NDArray[np.uint8]) -> None:
    """After what the stream did up to now, which made the tensor."""
    with torch.cuda.stream(stream):
        _pin(torch, flat.device, memory)
        torch.from_numpy(memory).copy_(flat, non_blocking=True)
        stream.synchronize()


def _to_device(torch: Any, tensor: Any, device: str, raw: NDArray[np.uint8]) -> Any:
    """When it returns, the bytes of the host are no longer needed."""
    if not device.startswith("cuda"):
        return tensor.to(device)
    with torch.cuda.device(device):
        _pin(torch, device, raw)
        moved = tensor.to(device, non_blocking=True)
        torch.cuda.current_stream().synchronize()
    return moved


def _pin(torch: Any, device: Any, memory: NDArray[np.uint8]) -> None:
    known = pinning()
    if known is not None:
        torch.cuda.current_stream(device).query()  # makes the device's context this thread's
        known.pin(memory)


def _called(tensor: Any) -> str:
    return f"a {tensor.__class__.__name__} of shape {list(tensor.shape)} and dtype {tensor.dtype}"


def _first_line(error: Exception) -> str:
    return str(error).partition("\n")[0][:200]
