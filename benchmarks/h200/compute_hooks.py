"""What the server of `compute` does: it has a tensor on its card, and doubles what passes through, there."""

from collections.abc import Mapping
from importlib import import_module
from typing import Any

from kpu.torch.hooks import TensorHooks

ELEMENTS = 64 << 20
"""Of four bytes each."""


class OnCard(TensorHooks):
    def __init__(self) -> None:
        torch = import_module("torch")
        self._resident = torch.arange(ELEMENTS, dtype=torch.int32, device="cuda")

    def produce(self, index: int, parameters: Mapping[str, str]) -> Any:
        del index, parameters
        return self._resident

    def process(self, tensor: Any) -> Any:
        return tensor.to("cuda") * 2
