"""Tensors over TCP beside plain gRPC that carries the same chunks as generated protobuf classes, in the same run.

The peer is what one writes first: service.proto compiled, chunks of 1 MiB, filled into one array on arrival; once with
gRPC's threads and once with asyncio, and the better of both counts. Runs are interleaved, so that whatever else the
machine does happens to all of them. Memory is the growth of each process's peak over what it held before, beside the
payload. Shared memory has a benchmark of its own.
"""

import asyncio
import importlib.util
import os
import re
import subprocess
import sys
import tempfile
import threading
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from statistics import median
from time import perf_counter
from typing import Any

import grpc
import numpy as np

import kpu.wire
from kpu.client.tensor_client import TensorClient
from kpu.torch.hooks import TensorHooks

PAYLOAD = 256 << 20
CHUNK = 1 << 20
TURNS = 9
SMALL_TURNS = 300
MEMORY_PAYLOAD = 1 << 30
UNLIMITED = (("grpc.max_receive_message_length", -1), ("grpc.max_send_message_length", -1))
UP, DOWN = "/peer.Tensors/Up", "/peer.Tensors/Down"
ECHO, TAKE = "/peer.Empty/Echo", "/peer.Empty/Take"
_SERVING = re.compile(r"port=(\d+)")


class Resident(TensorHooks):
    """Sends what it holds already, so that making a tensor is not measured."""

    def __init__(self) -> None:
        self._held: dict[int, Any] = {}

    def produce(self, index: int, parameters: Any) -> Any:
        del index
        size = int(parameters["shape"])
        if size not in self._held:
            self._held[size] = np.ones(size, np.uint8)
        return self._held[size]


def main() -> None:
    if sys.argv[1:2] == ["peer"]:
        asyncio.run(serve_peer_async()) if sys.argv[2] == "aio" else serve_peer_threads()
        return
    with tempfile.TemporaryDirectory() as where:
        compile_protocol(Path(where))
        asyncio.run(measure())


def compile_protocol(where: Path) -> None:
    from grpc_tools import protoc

    proto = Path(kpu.wire.__file__).parent / "service.proto"
    assert not protoc.main(["protoc", f"--proto_path={proto.parent}", f"--python_out={where}", str(proto)])
    os.environ["TENSORS_PROTOCOL"] = str(where / "service_pb2.py")


def protocol() -> Any:
    spec = importlib.util.spec_from_file_location("service_pb2", os.environ["TENSORS_PROTOCOL"])
    assert spec
    assert spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


# The peer -------------------------------------------------------------------------------------------------------------


def peer_chunks(pb: Any, data: memoryview) -> Any:
    total = -(-len(data) // CHUNK)
    for number in range(total):
        piece = bytes(data[number * CHUNK : (number + 1) * CHUNK])
        yield pb.TensorChunk(
            tensor_id="tensor", chunk_number=number, data=piece, total_chunks=total, is_last=number == total - 1
        )


def fill(target: memoryview, chunk: Any) -> None:
    start = chunk.chunk_number * CHUNK
    target[start : start + len(chunk.data)] = chunk.data


def peer_handler(pb: Any, up: Any, down: Any) -> Any:
    methods = {
        "Up": grpc.stream_unary_rpc_method_handler(up, pb.TensorChunk.FromString, pb.TensorResponse.SerializeToString),
        "Down": grpc.unary_stream_rpc_method_handler(
            down, pb.TensorRequest.FromString, pb.TensorChunk.SerializeToString
        ),
    }
    return grpc.method_handlers_generic_handler("peer.Tensors", methods)


def empty_handler() -> Any:
    """As little as a call of each kind can do: an empty message comes, and one goes."""

    async def echo(messages: Any, _: Any) -> Any:
        async for message in messages:
            yield message

    async def take(messages: Any, _: Any) -> bytes:
        async for _ in messages:
            pass
        return b""

    methods = {"Echo": grpc.stream_stream_rpc_method_handler(echo), "Take": grpc.stream_unary_rpc_method_handler(take)}
    return grpc.method_handlers_generic_handler("peer.Empty", methods)


def serve_peer_threads() -> None:
    pb = protocol()
    held = np.ones(PAYLOAD, np.uint8).data

    def up(chunks: Any, _: Any) -> Any:
        room = np.empty(PAYLOAD, np.uint8).data
        for chunk in chunks:
            fill(room, chunk)
        return pb.TensorResponse(success=True)

    def down(_: Any, __: Any) -> Any:
        return peer_chunks(pb, held)

    server = grpc.server(ThreadPoolExecutor(4), handlers=[peer_handler(pb, up, down)], options=UNLIMITED)
    print(f"port={server.add_insecure_port('127.0.0.1:0')}", file=sys.stderr, flush=True)
    server.start()
    server.wait_for_termination()


async def serve_peer_async() -> None:
    pb = protocol()
    held = np.ones(PAYLOAD, np.uint8).data

    async def up(chunks: Any, _: Any) -> Any:
        room = np.empty(PAYLOAD, np.uint8).data
        async for chunk in chunks:
            fill(room, chunk)
        return pb.TensorResponse(success=True)

    async def down(_: Any, __: Any) -> Any:
        for chunk in peer_chunks(pb, held):
            yield chunk

    server = grpc.aio.server(handlers=[peer_handler(pb, up, down), empty_handler()], options=UNLIMITED)
    print(f"port={server.add_insecure_port('127.0.0.1:0')}", file=sys.stderr, flush=True)
    await server.start()
    await server.wait_for_termination()


class ThreadedPeer:
    """A client of the peer with gRPC's threads."""

    def __init__(self, port: int, pb: Any) -> None:
        channel = grpc.insecure_channel(f"127.0.0.1:{port}", options=UNLIMITED)
        self._pb = pb
        self._up = channel.stream_unary(UP, pb.TensorChunk.SerializeToString, pb.TensorResponse.FromString)
        self._down = channel.unary_stream(DOWN, pb.TensorRequest.SerializeToString, pb.TensorChunk.FromString)

    async def up(self, data: Any) -> None:
        await asyncio.to_thread(self._up, peer_chunks(self._pb, data.data))

    async def down(self) -> None:
        def receive() -> None:
            room = np.empty(PAYLOAD, np.uint8).data
            for chunk in self._down(self._pb.TensorRequest(count=1)):
                fill(room, chunk)

        await asyncio.to_thread(receive)


class AsyncPeer:
    """A client of the peer with asyncio."""

    def __init__(self, port: int, pb: Any) -> None:
        channel = grpc.aio.insecure_channel(f"127.0.0.1:{port}", options=UNLIMITED)
        self._pb = pb
        self._up: Any = channel.stream_unary(UP, pb.TensorChunk.SerializeToString, pb.TensorResponse.FromString)
        self._down: Any = channel.unary_stream(DOWN, pb.TensorRequest.SerializeToString, pb.TensorChunk.FromString)

    async def up(self, data: Any) -> None:
        await self._up(peer_chunks(self._pb, data.data))

    async def down(self) -> None:
        room = np.empty(PAYLOAD, np.uint8).data
        async for chunk in self._down(self._pb.TensorRequest(count=1)):
            fill(room, chunk)


# The measurements -----------------------------------------------------------------------------------------------------


class Process:
    """A server of its own, and how much memory it takes."""

    def __init__(self, *command: str, **variables: str) -> None:
        self.process = subprocess.Popen(
            [sys.executable, *command], stderr=subprocess.PIPE, text=True, env={**os.environ, **variables}
        )
        assert self.process.stderr
        found = next(match for line in self.process.stderr if (match := _SERVING.search(line)))
        self.port = int(found[1])
        threading.Thread(target=self.process.stderr.read, daemon=True).start()

    def __enter__(self) -> "Process":
        return self

    def __exit__(self, *_: object) -> None:
        self.process.kill()
        self.process.wait()


def our_server(**variables: str) -> Process:
    hooks = {"KPU_HOOKS": "benchmarks.tensors:Resident"}
    return Process("-m", "kpu.torch.server", "--host", "127.0.0.1", "--port", "0", **hooks, **variables)


async def measure() -> None:
    pb = protocol()
    with (
        our_server() as ours,
        Process("-m", "benchmarks.tensors", "peer", "threads") as threads,
        Process("-m", "benchmarks.tensors", "peer", "aio") as aio,
    ):
        async with TensorClient("127.0.0.1", ours.port, shared=False) as client:
            await throughput(client, ThreadedPeer(threads.port, pb), AsyncPeer(aio.port, pb))
            await small_round_trips(client, aio.port)
    await memory_growth()


async def throughput(client: TensorClient, threaded: ThreadedPeer, asynchronous: AsyncPeer) -> None:
    data = np.random.default_rng(0).integers(0, 255, PAYLOAD, dtype=np.uint8)
    size = {"shape": str(PAYLOAD)}
    ways: dict[str, tuple[Callable[[], Awaitable[object]], Callable[[], Awaitable[object]]]] = {
        "kpu": (lambda: client.send_tensors(data), lambda: client.receive_tensors(1, size)),
        "protobuf, threads": (lambda: threaded.up(data), threaded.down),
        "protobuf, asyncio": (lambda: asynchronous.up(data), asynchronous.down),
    }
    for up, down in ways.values():
        await up()
        await down()
    took: dict[tuple[str, str], list[float]] = {}
    for _ in range(TURNS):
        for name, pair in ways.items():
            for direction, transfer in zip(("up", "down"), pair, strict=True):
                took.setdefault((name, direction), []).append(await seconds_of(transfer))
    print(f"  {PAYLOAD >> 20} MiB over TCP, GB/s, median of {TURNS} interleaved runs      up    down")
    for name in ways:
        print(f"    {name:<58} {rate(took[name, 'up']):5.2f}   {rate(took[name, 'down']):5.2f}")
    ratios: list[str] = []
    for direction, bar in (("up", 1.3), ("down", 1.1)):
        peer = max(rate(took[name, direction]) for name in ways if name != "kpu")
        ratios.append(f"{direction} {rate(took['kpu', direction]) / peer:.2f} (bar {bar})")
    print(f"    beside the better peer: {', '.join(ratios)}")


async def small_round_trips(client: TensorClient, port: int) -> None:
    """Beside calls of the same kinds in plain gRPC, in which one empty message goes each way and nothing is done."""
    small = np.arange(16, dtype=np.float32)
    async with grpc.aio.insecure_channel(f"127.0.0.1:{port}") as channel:
        stream: Any = channel.stream_stream(ECHO)
        upload: Any = channel.stream_unary(TAKE)

        async def empty_stream() -> None:
            call = stream()
            await call.write(b"")
            await call.done_writing()
            async for _ in call:
                pass

        async def empty_upload() -> None:
            call = upload()
            await call.write(b"")
            await call.done_writing()
            await call

        ways: dict[str, Callable[[], Awaitable[object]]] = {
            "stream, empty call": empty_stream,
            "stream_tensors of 64 bytes": lambda: client.stream_tensors(small),
            "upload, empty call": empty_upload,
            "send_tensors of 64 bytes": lambda: client.send_tensors(small),
        }
        took: dict[str, list[float]] = {name: [] for name in ways}
        for _ in range(SMALL_TURNS):
            for name, call in ways.items():
                took[name].append(await seconds_of(call))
    p50 = [median(took[name]) * 1e6 for name in ways]
    print(f"  a small tensor, p50 of {SMALL_TURNS} interleaved calls, bar 1.5")
    for name, micros in zip(ways, p50, strict=True):
        print(f"    {name:<58} {micros:5.0f} µs")
    print(f"    beside the empty call: stream {p50[1] / p50[0]:.2f}, upload {p50[3] / p50[2]:.2f}")


async def memory_growth() -> None:
    """Each direction with fresh processes: what a peak was before does not hide what it is now."""
    print(f"  growth of the peak for {MEMORY_PAYLOAD >> 20} MiB, beside the payload, bar 1.2    client  server")
    for direction in ("up", "down"):
        with our_server() as server:
            async with TensorClient("127.0.0.1", server.port, shared=False) as client:
                await client.send_tensors(np.ones(4 << 20, np.uint8))
                data = np.ones(MEMORY_PAYLOAD, np.uint8)
                size = {"shape": str(MEMORY_PAYLOAD)}
                if direction == "down":
                    async with TensorClient("127.0.0.1", server.port, shared=False) as another:
                        await another.receive_tensors(1, size)  # the server holds it from now on
                pids = (os.getpid(), server.process.pid)
                before = [forget_peak(pid) for pid in pids]
                if direction == "up":
                    await client.send_tensors(data)
                else:
                    await client.receive_tensors(1, size)
                grown = [(peak(pid) - was) / MEMORY_PAYLOAD for pid, was in zip(pids, before, strict=True)]
                del data
        print(f"    {direction:<58} {grown[0]:5.2f}   {grown[1]:5.2f}")


async def seconds_of(call: Callable[[], Awaitable[object]]) -> float:
    began = perf_counter()
    await call()
    return perf_counter() - began


def rate(seconds: list[float]) -> float:
    return PAYLOAD / median(seconds) / 1e9


def forget_peak(pid: int) -> int:
    Path(f"/proc/{pid}/clear_refs").write_text("5")
    return peak(pid)


def peak(pid: int) -> int:
    found = re.search(r"^VmHWM:\s+(\d+) kB$", Path(f"/proc/{pid}/status").read_text(), re.MULTILINE)
    assert found
    return int(found[1]) * 1024


if __name__ == "__main__":
    main()
