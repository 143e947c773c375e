"""Whoever reaches the port may ask how the server is, and cannot take it down by asking."""

import asyncio
import signal
from unittest.mock import Mock

import grpc
import numpy as np
import pytest

from kpu.client.tensor_client import TensorClient
from kpu.errors import TooLarge
from kpu.torch import calls
from kpu.torch.health import WATCHERS_LIMIT, Health
from kpu.torch.server import TensorServer
from kpu.torch.settings import read_settings

WATCH, CHECK = "/grpc.health.v1.Health/Watch", "/grpc.health.v1.Health/Check"
SERVING, NOT_SERVING = b"\x08\x01", b"\x08\x02"


def test_watchers_are_few_and_leave_room_for_everybody_else(server):
    async def scene():
        async with grpc.aio.insecure_channel(f"127.0.0.1:{server.port}") as channel:
            watching = [channel.unary_stream(WATCH)(b"") for _ in range(WATCHERS_LIMIT)]
            assert [await watch.read() for watch in watching] == [SERVING] * WATCHERS_LIMIT
            refused = channel.unary_stream(WATCH)(b"")
            assert await refused.code() is grpc.StatusCode.UNAVAILABLE
            assert await channel.unary_unary(CHECK)(b"", timeout=10) == SERVING
            watching[0].cancel()
            async with asyncio.timeout(10):
                while await (another := channel.unary_stream(WATCH)(b"")).read() != SERVING:
                    await asyncio.sleep(0.01)
            for watch in (*watching, another):
                watch.cancel()

    asyncio.run(scene())


def test_a_watcher_is_told_that_the_server_stops_and_does_not_hold_it_up(serve):
    stopping = serve("--grace-seconds", "100")

    async def scene():
        async with grpc.aio.insecure_channel(f"127.0.0.1:{stopping.port}") as channel:
            watch = channel.unary_stream(WATCH)(b"")
            assert await watch.read() == SERVING
            stopping.send_signal(signal.SIGTERM)
            assert await watch.read() == NOT_SERVING
            assert await watch.read() is grpc.aio.EOF
            assert await asyncio.to_thread(stopping.process.wait, 30) == 0

    asyncio.run(scene())


def test_a_watcher_that_has_just_been_told_the_state_is_told_the_next_one_too():
    """The state changes before the one who tells it gets on with it, as on a machine that is busy."""

    async def scene():
        health = Health()
        health.set_serving(True)
        told = health._watch(b"", Mock())
        assert await anext(told) == SERVING
        health.set_serving(False)
        assert await anext(told) == NOT_SERVING
        assert await anext(told, None) is None

    asyncio.run(scene())


def test_a_server_with_too_many_calls_says_so_and_still_answers_for_its_health(monkeypatch):
    monkeypatch.setattr(calls, "CALLS_AT_ONCE", 1)

    async def scene():
        server = TensorServer(read_settings(["--host", "127.0.0.1", "--port", "0", "--grace-seconds", "0"], {}))
        port = await server.start()
        async with grpc.aio.insecure_channel(f"127.0.0.1:{port}") as channel:
            endless = channel.stream_stream("/kpu.torch.Service/StreamTensors")()
            async with asyncio.timeout(10):
                while not server.calls.in_flight:
                    await asyncio.sleep(0.01)
            async with TensorClient("127.0.0.1", port, shared=False) as client:
                with pytest.raises(TooLarge, match="the server is busy"):
                    await client.send_tensors(np.ones(3))
                assert await channel.unary_unary(CHECK)(b"", timeout=10) == SERVING
                endless.cancel()
                async with asyncio.timeout(10):
                    while server.calls.in_flight:
                        await asyncio.sleep(0.01)
                assert (await client.send_tensors(np.ones(3))).success
        await server.stop()

    asyncio.run(scene())
