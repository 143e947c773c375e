"""Loads as people write them, with PyTorch: three that the card cannot keep up with, two that the processor cannot.

PyTorch is on the machine with the card and nowhere else, so it is imported by name.
"""

from importlib import import_module
from importlib.util import find_spec
from typing import Any

from .driver import Driver
from .driver_loads import Submitted

SMALL_KERNELS = 50
GRAPH_KERNELS = 10


def has_torch() -> bool:
    return find_spec("torch") is not None


def start_torch() -> Any:
    torch = import_module("torch")
    torch.cuda.init()
    torch.zeros(1, device="cuda")
    torch.cuda.synchronize()
    return torch


class Matmul:
    """8192 by 8192 in bfloat16: bound by power, so a card that rests between two of them runs the next one faster."""

    depth = 3
    edge = 8192

    def __init__(self, _driver: Driver) -> None:
        self._torch = start_torch()
        shape = {"device": "cuda", "dtype": self._torch.bfloat16}
        self._factors = [self._torch.randn(self.edge, self.edge, **shape) for _ in range(2)]
        self._product = self._torch.empty(self.edge, self.edge, **shape)
        self._multiply()

    def submit(self) -> Submitted:
        self._multiply()
        return Submitted(1, None)

    def _multiply(self) -> None:
        self._torch.matmul(*self._factors, out=self._product)


class Graph(Matmul):
    """A captured graph of ten products, replayed; captured under whatever limit there is."""

    edge = 4096

    def __init__(self, driver: Driver) -> None:
        super().__init__(driver)
        self._torch.cuda.synchronize()
        self._graph = self._torch.cuda.CUDAGraph()
        with self._torch.cuda.graph(self._graph):
            for _ in range(GRAPH_KERNELS):
                self._multiply()

    def submit(self) -> Submitted:
        self._graph.replay()
        return Submitted(GRAPH_KERNELS, None)


class Small:
    """Additions so small that the processor cannot submit them as fast as they run."""

    depth = 8

    def __init__(self, _driver: Driver) -> None:
        self._values = start_torch().randn(65536, device="cuda")

    def submit(self) -> Submitted:
        for _ in range(SMALL_KERNELS):
            self._values.add_(1e-6)
        return Submitted(SMALL_KERNELS, None)


class Train:
    """Training steps of a small transformer: hundreds of short kernels of many kinds, bound by Python."""

    depth = 3

    def __init__(self, _driver: Driver) -> None:
        self._torch = torch = start_torch()
        torch.manual_seed(0)
        layer = torch.nn.TransformerEncoderLayer(512, 8, 2048, batch_first=True, dropout=0.0)
        encoder = torch.nn.TransformerEncoder(layer, 6, enable_nested_tensor=False)
        self._model = torch.nn.Sequential(encoder, torch.nn.Linear(512, 1000)).cuda()
        self._optimizer = torch.optim.AdamW(self._model.parameters(), lr=1e-4)
        self._inputs = torch.randn(16, 128, 512, device="cuda")
        self._targets = torch.randint(0, 1000, (16 * 128,), device="cuda")

    def submit(self) -> Submitted:
        self._optimizer.zero_grad(set_to_none=True)
        with self._torch.autocast("cuda", dtype=self._torch.bfloat16):
            scores = self._model(self._inputs).reshape(-1, 1000).float()
            loss = self._torch.nn.functional.cross_entropy(scores, self._targets)
        loss.backward()
        self._optimizer.step()
        return Submitted(1, None)


LOADS = {"matmul": Matmul, "graph": Graph, "small": Small, "train": Train}
