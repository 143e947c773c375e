"""Torch tensors through a real server that has torch."""

import numpy as np
import pytest
import torch

pytestmark = pytest.mark.filterwarnings("ignore:.*support is experimental")

DOUBLING = """
from kpu.torch.hooks import TensorHooks

class Doubling(TensorHooks):
    def process(self, tensor):
        return tensor * 2
"""


def test_tensors_of_many_dtypes_pass_through_as_they_are(server, talk):
    kinds = [torch.float32, torch.bfloat16, torch.float8_e4m3fn, torch.complex64, torch.bool, torch.uint16, torch.int64]
    sent = [torch.randn(7, 5).to(kind) for kind in kinds]
    for before, after in zip(sent, talk(server.port, lambda client: client.stream_tensors(*sent)), strict=True):
        assert after.dtype == before.dtype
        assert torch.equal(after.view(torch.uint8), before.view(torch.uint8))


def test_flags_survive_the_way_there_and_back(server, talk):
    sent = (torch.ones(3, requires_grad=True), torch.nn.Parameter(torch.ones(2)), torch.tensor(4.0), torch.empty(0, 3))
    grad, parameter, scalar, empty = talk(server.port, lambda client: client.stream_tensors(*sent))
    assert grad.requires_grad
    assert isinstance(parameter, torch.nn.Parameter)
    assert scalar.shape == ()
    assert empty.shape == (0, 3)


def test_numpy_arrays_come_back_as_torch_tensors(server, talk):
    (back,) = talk(server.port, lambda client: client.stream_tensors(np.arange(6).reshape(2, 3)))
    assert torch.equal(back, torch.arange(6).reshape(2, 3))


@pytest.mark.parametrize("dtype", ["bfloat16", "complex32", "torch.float16"])
def test_random_tensors_of_torch_dtypes_are_made(server, dtype, talk):
    (made,) = talk(server.port, lambda client: client.receive_tensors(1, {"shape": "[3, 4]", "dtype": dtype}))
    assert str(made.dtype).removeprefix("torch.") == dtype.removeprefix("torch.")
    assert made.shape == (3, 4)


def test_hooks_get_torch_tensors(serve, tmp_path, talk):
    (tmp_path / "doubling.py").write_text(DOUBLING)
    server = serve(KPU_HOOKS="doubling:Doubling", PYTHONPATH=str(tmp_path))
    (doubled,) = talk(server.port, lambda client: client.stream_tensors(torch.ones(3, dtype=torch.bfloat16)))
    assert torch.equal(doubled, torch.full((3,), 2, dtype=torch.bfloat16))


def test_the_server_says_that_it_has_torch(server):
    assert f"torch={torch.__version__}" in "".join(server.lines)
