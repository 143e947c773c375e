"""What a receiver takes, judged by what a header says and before memory is set aside for it."""

from collections.abc import Set
from dataclasses import dataclass

from kpu.errors import TooLarge, UnsupportedTensor
from kpu.tensors import Description


@dataclass(frozen=True, slots=True)
class Limits:
    """Bounds on one tensor and on one call."""

    tensor_bytes: int
    open_tensors: int = 64
    dimensions: int = 64
    dtypes: Set[str] | None = None

    def check(self, description: Description) -> None:
        size = description.size_bytes
        if size > self.tensor_bytes:
            raise TooLarge(
                f"a tensor of {size} bytes, shape {list(description.shape)} of {description.dtype}, is too large: "
                f"at most {self.tensor_bytes} bytes are accepted; send it in parts, or raise KPU_MAX_TENSOR_BYTES"
            )
        if len(description.shape) > self.dimensions:
            raise TooLarge(f"a tensor has {len(description.shape)} dimensions, at most {self.dimensions} are accepted")
        if self.dtypes is not None and description.dtype not in self.dtypes:
            raise UnsupportedTensor(
                f"dtype {description.dtype} is not accepted here, expected one of {', '.join(sorted(self.dtypes))}"
            )
