"""Torch tensors through shared memory: every dtype, bit by bit, and `empty` with torch's own dtypes."""

import asyncio
import importlib
import re
from typing import Any

import pytest

from kpu.client import TensorClient, empty
from kpu.client.transfers import TransferStats
from kpu.tensors.dtypes import ITEM_BYTES

torch: Any = importlib.import_module("torch")

WITHOUT_ARITHMETIC = re.compile(r"bits|u?int[1-7]$")
DTYPES = [
    getattr(torch, name) for name in sorted(ITEM_BYTES) if hasattr(torch, name) and not WITHOUT_ARITHMETIC.match(name)
]
CARRIERS = {1: torch.uint8, 2: torch.int16, 4: torch.int32, 8: torch.int64, 16: torch.complex128}
ROWS = 1 << 9


def _bits(dtype: Any) -> Any:
    raw = torch.randint(0, 2 if dtype is torch.bool else 256, (ROWS, 1024), dtype=torch.uint8)
    return raw.view(dtype)


def _stats(client: TensorClient) -> TransferStats:
    assert client.transfer.stats
    return client.transfer.stats


def _same_bits(one: Any, other: Any) -> bool:
    return one.dtype == other.dtype and torch.equal(one.view(torch.uint8), other.view(torch.uint8))


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_every_dtype_comes_back_bit_by_bit(server, dtype):
    async def scenario() -> None:
        sent = _bits(dtype)
        async with TensorClient("127.0.0.1", server.port) as client:
            (back,) = await client.stream_tensors(sent)
            assert _stats(client).path == "shared-memory"
            assert _same_bits(back, sent)
            back.view(torch.uint8).zero_()
            assert sent.view(torch.uint8).any()

    asyncio.run(scenario())


def _streamed(server: Any, sent: Any) -> tuple[Any, TransferStats]:
    async def scenario() -> tuple[Any, TransferStats]:
        async with TensorClient("127.0.0.1", server.port) as client:
            (back,) = await client.stream_tensors(sent)
            return back, _stats(client)

    return asyncio.run(scenario())


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_a_tensor_that_does_not_lie_compact_is_copied_once_and_straight_to_shared_memory(server, dtype):
    """A copy in ordinary memory beside it would take as much again."""
    compact = torch.randint(0, 2, (ROWS, 1 << 13), dtype=torch.uint8).view(dtype)
    back, stats = _streamed(server, compact.t())
    assert (stats.path, stats.bytes_copied) == ("shared-memory", compact.nbytes)
    carrier = CARRIERS[dtype.itemsize]
    assert back.dtype == dtype
    assert torch.equal(back.view(carrier), compact.view(carrier).t())


@pytest.mark.parametrize("lazy", [lambda tensor: tensor.conj(), lambda tensor: tensor.conj().imag], ids=["conj", "neg"])
def test_lazy_conjugates_and_negatives_are_resolved_where_they_are_wanted(server, lazy):
    sent = lazy(torch.randn(ROWS, 1024, dtype=torch.complex64))
    back, stats = _streamed(server, sent)
    assert (stats.path, stats.bytes_copied) == ("shared-memory", sent.nbytes)
    assert torch.equal(back, sent)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float8_e4m3fn, torch.complex64, torch.bool], ids=str)
def test_empty_takes_torchs_dtypes_and_is_sent_without_a_copy(server, dtype):
    async def scenario() -> None:
        tensor = empty((ROWS, 1024), dtype)
        assert isinstance(tensor, torch.Tensor)
        assert tensor.dtype == dtype
        tensor.view(torch.uint8).fill_(1)
        async with TensorClient("127.0.0.1", server.port) as client:
            await client.send_tensors(tensor)
            assert (_stats(client).path, _stats(client).bytes_copied) == ("shared-memory", 0)

    asyncio.run(scenario())


def test_gradients_are_asked_for_and_kept_through_shared_memory(server):
    async def scenario() -> None:
        sent = torch.nn.Parameter(torch.randn(ROWS, 1024))
        async with TensorClient("127.0.0.1", server.port) as client:
            (back,) = await client.stream_tensors(sent)
            assert _stats(client).path == "shared-memory"
        assert back.requires_grad
        (back * 2).sum().backward()
        assert torch.equal(back.grad, torch.full_like(sent, 2.0))

    asyncio.run(scenario())


def test_a_tensor_made_by_the_server_is_an_ordinary_tensor(server):
    async def scenario() -> Any:
        async with TensorClient("127.0.0.1", server.port) as client:
            (made,) = await client.receive_tensors(1, {"shape": f"{ROWS},1024", "dtype": "bfloat16"})
            assert _stats(client).path == "shared-memory"
            return made

    made = asyncio.run(scenario())
    made.add_(1)
    assert made.dtype == torch.bfloat16
    assert 0.5 < made.float().mean() < 1.5
