"""What is known of a tensor before its bytes: the metadata of its first chunk, written strictly and read liberally.

Reading never allocates and never trusts: a shape whose bytes would overflow, or that contradicts `size_bytes`, is
refused here, before anybody makes room for it.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from math import prod

from kpu.errors import MalformedMessage
from kpu.tensors.dtypes import PREFIX, dtype_name, item_bytes

MAX_DIMENSIONS = 64
MAX_BYTES = 2**63 - 1
_DIMENSION = re.compile(r"[0-9]{1,19}", re.ASCII)
_DEVICE = re.compile(r"[a-z][a-z0-9_]{0,31}(:[0-9]{1,4})?", re.ASCII)
_BRACKETS = {"[": "]", "(": ")"}
_DIFFERENTIABLE = ("float", "complex")
_KEYS = ("shape", "dtype", "size_bytes", "device", "requires_grad", "parameter")
_VALUE_LIMIT = 2048
_TRUE, _FALSE = "true", "false"
_RAW_BYTES = "send the raw bytes (pickled tensors are not read)"


@dataclass(frozen=True, slots=True)
class Description:
    """All of a tensor but its bytes."""

    shape: tuple[int, ...]
    dtype: str
    device: str = "cpu"
    requires_grad: bool = False
    is_parameter: bool = False

    @property
    def size_bytes(self) -> int:
        return prod(self.shape) * item_bytes(self.dtype)

    def metadata(self) -> dict[str, str]:
        """As the first chunk carries it. Flags that are not set stay away."""
        facts = {
            "shape": str(list(self.shape)),
            "dtype": PREFIX + self.dtype,
            "device": self.device,
            "size_bytes": str(self.size_bytes),
        }
        if self.requires_grad:
            facts["requires_grad"] = _TRUE
        if self.is_parameter:
            facts["parameter"] = _TRUE
        return facts

    @classmethod
    def read(cls, metadata: Mapping[str, str]) -> "Description":
        """What a first chunk says of its tensor, once it is known to make sense."""
        for key in ("shape", "dtype"):
            if key not in metadata:
                raise MalformedMessage(
                    f'the first chunk has no "{key}" in its metadata; declare shape and dtype, and {_RAW_BYTES}'
                )
        told = tuple(map(metadata.get, _KEYS))
        if any(len(value) > _VALUE_LIMIT for value in told if value):
            raise MalformedMessage(f"the metadata of a first chunk has a value of more than {_VALUE_LIMIT} characters")
        return _read(*told)


@lru_cache(maxsize=1024)
def _read(
    shape_text: str,
    dtype_text: str,
    size_text: str | None,
    device: str | None,
    requires_grad: str | None,
    parameter: str | None,
) -> Description:
    """Remembered: a stream of small tensors says the same again and again."""
    dtype = dtype_name(dtype_text)
    shape = parse_shape(shape_text)
    size = checked_size(shape, item_bytes(dtype))
    if size_text is not None and size_text.strip() != str(size):
        raise MalformedMessage(
            f'size_bytes is "{size_text[:32]}", but shape {list(shape)} of {dtype} takes {size} bytes; {_RAW_BYTES}'
        )
    if device is not None and not _DEVICE.fullmatch(device):
        raise MalformedMessage(f'device is "{device[:32]}", expected one such as "cpu" or "cuda:0"')
    wants_grad = _flag("requires_grad", requires_grad)
    if wants_grad and not dtype.lstrip("b").startswith(_DIFFERENTIABLE):
        raise MalformedMessage(f"requires_grad is true, but tensors of {dtype} have no gradient")
    return Description(shape, dtype, device or "cpu", wants_grad, _flag("parameter", parameter))


def parse_shape(text: str) -> tuple[int, ...]:
    """`[2, 3]`, `(2, 3)` and `2,3` are one shape; `[]`, `()` and nothing at all are that of a scalar."""
    inner = text.strip()
    if inner and inner[0] in _BRACKETS:
        if len(inner) < 2 or inner[-1] != _BRACKETS[inner[0]]:
            raise _bad_shape(text)
        inner = inner[1:-1].strip()
    if not inner:
        return ()
    parts = [part.strip() for part in inner.removesuffix(",").split(",", MAX_DIMENSIONS + 1)]
    if len(parts) > MAX_DIMENSIONS or not all(_DIMENSION.fullmatch(part) for part in parts):
        raise _bad_shape(text)
    return tuple(map(int, parts))


def checked_size(shape: tuple[int, ...], item: int) -> int:
    """Bytes of a tensor, or a refusal where not even the strides could be counted."""
    # Torch multiplies the other dimensions even where one of them is zero.
    if prod(max(dimension, 1) for dimension in shape) * item > MAX_BYTES:
        raise MalformedMessage(f"shape {list(shape)[:8]} is beyond what can be addressed, expected at most 2**63 bytes")
    return prod(shape) * item


def _bad_shape(text: str) -> MalformedMessage:
    return MalformedMessage(
        f'shape is "{text[:64]}", expected at most {MAX_DIMENSIONS} whole numbers such as "20,20" or "[20, 20]"'
    )


def _flag(key: str, text: str | None) -> bool:
    value = (text or _FALSE).lower()
    if value not in (_TRUE, _FALSE):
        raise MalformedMessage(f'{key} is "{value[:32]}", expected "true" or "false"')
    return value == _TRUE
