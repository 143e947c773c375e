"""Whatever breaks is a clear exception on one side and costs the other nothing: no hang, no leak, no dead server."""

import asyncio
import gc
import os
import re
import signal
import socket
import struct
import subprocess
import sys
import textwrap
import time
import urllib.request
from collections.abc import Callable
from typing import Any

import grpc
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from kpu.client import channels
from kpu.client.tensor_client import TensorClient
from kpu.errors import ServerGone, TransferFailed
from kpu.wire.messages import TensorChunk

MIB = 1 << 20


def wait_until(true: Callable[[], bool], within_s: float = 30.0) -> None:
    deadline = time.monotonic() + within_s
    while not true():
        assert time.monotonic() < deadline, "it did not come true in time"
        time.sleep(0.02)


class Watched:
    """A server and its metrics."""

    def __init__(self, process: Any, talk: Callable[..., Any]) -> None:
        self.process = process
        self._talk = talk
        self.port = process.port
        found = re.search(r"metrics_port=(\d+)", "".join(process.lines))
        assert found
        self._metrics = f"http://127.0.0.1:{found[1]}/metrics"

    def metric(self, name: str) -> float:
        with urllib.request.urlopen(self._metrics, timeout=10) as answer:
            found = re.search(rf"^{name} (\S+)$", answer.read().decode(), re.MULTILINE)
        assert found
        return float(found[1])

    def still_works(self) -> bool:
        (back,) = self._talk(self.port, lambda client: client.stream_tensors(np.arange(3)))
        return np.asarray(back).tolist() == [0, 1, 2]

    @property
    def holds_nothing(self) -> bool:
        return self.metric("kpu_under_way_bytes") == self.metric("kpu_calls_in_flight") == 0


@pytest.fixture(scope="module")
def watched(serve: Any, talk: Any) -> Watched:
    return Watched(serve("--metrics-port", "0", "--keepalive-seconds", "1", "--idle-seconds", "2"), talk)


def test_a_server_that_is_not_there_is_told_at_once(talk):
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        with pytest.raises(ServerGone, match="is it running"):
            talk(unused.getsockname()[1], lambda client: client.receive_tensors())


def test_a_host_that_does_not_exist_is_told():
    async def ask() -> None:
        async with TensorClient("no-such-host.invalid", 1, shared=False) as client:
            await client.receive_tensors()

    with pytest.raises(ServerGone):
        asyncio.run(ask())


@pytest.mark.parametrize("method", ["send_tensors", "stream_tensors", "receive_tensors"])
def test_a_server_that_is_killed_in_the_middle_is_told(serve, method, talk):
    server = serve()

    async def kill_in_the_middle(client: TensorClient) -> None:
        arguments: Any = (1, {"shape": "300000000"}) if method == "receive_tensors" else (np.ones(1 << 30, np.uint8),)
        call = asyncio.create_task(getattr(client, method)(*arguments))
        before = server.figure("VmRSS")
        while server.figure("VmRSS") < before + 64 * MIB and not call.done():
            await asyncio.sleep(0.01)
        server.send_signal(signal.SIGKILL)
        await call

    with pytest.raises(ServerGone, match="went away"):
        talk(server.port, kill_in_the_middle)


def test_a_client_finds_a_server_that_was_started_again_with_its_next_call(serve, talk, monkeypatch):
    """It does not tell of a server that is there what it knows of the one that was."""
    monkeypatch.setattr(channels, "_RECONNECT_MS", (60_000, 60_000))
    first = serve()

    async def across_a_restart(client: TensorClient) -> Any:
        await client.send_tensors(np.ones(3))
        first.end()
        with pytest.raises(ServerGone):
            await client.send_tensors(np.ones(3))
        await asyncio.to_thread(serve, "--port", str(first.port))
        return await client.send_tensors(np.ones(3))

    assert talk(first.port, across_a_restart).success


def test_a_server_that_stands_still_is_noticed(serve, talk):
    server = serve()

    async def freeze(client: TensorClient) -> None:
        await client.receive_tensors()
        server.send_signal(signal.SIGSTOP)
        await client.send_tensors(np.ones(64 * MIB, np.uint8))

    try:
        with pytest.raises(ServerGone):
            talk(server.port, freeze, keepalive=1.0)
    finally:
        server.send_signal(signal.SIGCONT)


def test_a_server_that_accepts_and_says_nothing_is_noticed(monkeypatch, talk):
    monkeypatch.setattr("kpu.client.channels.CONNECT_SECONDS", 1.0)
    with socket.create_server(("127.0.0.1", 0)) as mute, pytest.raises(ServerGone):
        talk(mute.getsockname()[1], lambda client: client.receive_tensors())


CLIENT = textwrap.dedent("""
    import asyncio, sys
    import numpy as np
    from kpu.client.tensor_client import TensorClient

    async def main():
        client = TensorClient("127.0.0.1", int(sys.argv[1]), shared=False)
        await client.receive_tensors()
        print("ready", flush=True)
        await client.stream_tensors(np.ones(1 << 30, np.uint8))

    asyncio.run(main())
""")


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGSTOP])
def test_what_a_client_held_is_freed_when_it_dies_or_freezes_in_the_middle(watched, how):
    before = watched.process.figure("VmRSS")
    client = subprocess.Popen([sys.executable, "-c", CLIENT, str(watched.port)], stdout=subprocess.PIPE)
    try:
        assert client.stdout
        assert client.stdout.readline() == b"ready\n"
        wait_until(lambda: watched.metric("kpu_under_way_bytes") >= 1 << 30)
        client.send_signal(how)
        wait_until(lambda: watched.holds_nothing)
    finally:
        client.kill()
        client.wait()
        if client.stdout:
            client.stdout.close()
    wait_until(lambda: watched.process.figure("VmRSS") < before + 100 * MIB)
    assert watched.still_works()


def test_a_call_in_which_nothing_moves_is_ended_though_its_client_is_alive(watched):
    with grpc.insecure_channel(f"127.0.0.1:{watched.port}") as channel:
        started = TensorChunk("t", 0, b"abc", 2, metadata={"shape": "1000000", "dtype": "uint8"}).encode()

        def stalls() -> Any:
            yield started
            wait_until(call.done)

        call: Any = channel.stream_unary("/kpu.torch.Service/ReceiveTensors").future(stalls())
        assert call.exception(timeout=30).code() is grpc.StatusCode.DEADLINE_EXCEEDED
        assert "nothing moved in this call" in call.exception().details()
    wait_until(lambda: watched.holds_nothing)


def test_a_client_that_never_reads_its_answer_is_let_go(watched):
    with grpc.insecure_channel(f"127.0.0.1:{watched.port}") as channel:
        request = b"\x08\x01\x12\x12\x0a\x05shape\x12\x0930000000 "
        never_read = channel.unary_stream("/kpu.torch.Service/SendTensors")(request)
        wait_until(lambda: watched.metric("kpu_calls_in_flight") == 1)
        wait_until(lambda: watched.holds_nothing)
        never_read.cancel()


def test_a_cancelled_call_frees_what_it_held(watched, talk):
    async def cancel(client: TensorClient) -> None:
        call = asyncio.create_task(client.stream_tensors(np.ones(1 << 30, np.uint8)))
        while await asyncio.to_thread(watched.metric, "kpu_under_way_bytes") < 1 << 30:
            await asyncio.sleep(0.01)
        call.cancel()
        await asyncio.gather(call, return_exceptions=True)
        assert call.cancelled()
        await asyncio.to_thread(wait_until, lambda: watched.holds_nothing)
        assert (await client.send_tensors(np.ones(3))).success

    talk(watched.port, cancel)


def test_a_header_that_promises_terabytes_costs_nothing(watched):
    watched.process.forget_peak_memory()
    before = watched.process.figure("VmHWM")
    lies = [
        {"shape": "1000000000000", "dtype": "float64"},
        {"shape": "9223372036854775807", "dtype": "float64"},
        {"shape": "4294967296,4294967296,4294967296", "dtype": "uint8"},
        {"shape": "10", "dtype": "uint8", "size_bytes": "1000000000000"},
    ]
    with grpc.insecure_channel(f"127.0.0.1:{watched.port}") as channel:
        upload = channel.stream_unary("/kpu.torch.Service/ReceiveTensors")
        for lie in lies:
            with pytest.raises(grpc.RpcError) as refused:
                upload(iter([TensorChunk("t", 0, b"abc", 4_000_000_000, metadata=lie).encode()]), timeout=30)
            assert refused.value.code() in (
                grpc.StatusCode.INVALID_ARGUMENT,
                grpc.StatusCode.RESOURCE_EXHAUSTED,
            )
    assert watched.process.figure("VmHWM") - before < 16 * MIB


def test_a_message_that_is_too_long_is_refused_and_the_server_lives_on(watched):
    with grpc.insecure_channel(f"127.0.0.1:{watched.port}") as channel:
        with pytest.raises(grpc.RpcError) as refused:
            channel.stream_unary("/kpu.torch.Service/ReceiveTensors")(iter([b"\x1a" * (20 * MIB)]), timeout=30)
        assert refused.value.code() is grpc.StatusCode.RESOURCE_EXHAUSTED
    assert watched.still_works()


def test_chunks_that_came_before_their_first_are_counted_for_as_long_as_they_wait(watched):
    metadata = {"shape": str(3 * MIB), "dtype": "uint8"}
    chunks = [TensorChunk("t", number, bytes([number]) * MIB, 3, number == 2) for number in range(3)]
    chunks[0].metadata = metadata

    def later_ones_first() -> Any:
        yield from (chunks[2].encode(), chunks[1].encode())
        wait_until(lambda: watched.metric("kpu_under_way_bytes") == 2 * MIB)
        yield chunks[0].encode()

    with grpc.insecure_channel(f"127.0.0.1:{watched.port}") as channel:
        back = list(channel.stream_stream("/kpu.torch.Service/StreamTensors")(later_ones_first(), timeout=30))
    assert b"".join(bytes(TensorChunk.decode(message).data) for message in back) == b"".join(
        bytes(chunk.data) for chunk in chunks
    )
    wait_until(lambda: watched.holds_nothing)


text = st.text(max_size=8)
fuzzed_chunks = st.builds(
    TensorChunk,
    st.sampled_from("ab"),
    st.one_of(st.integers(0, 3), st.just(2**32 - 1)),
    st.binary(max_size=64),
    st.one_of(st.integers(0, 3), st.just(2**32 - 1)),
    st.booleans(),
    st.fixed_dictionaries(
        {},
        optional={
            "shape": st.one_of(text, st.sampled_from(["8", "2,4", "[]", "0", "-1", "99999999999"])),
            "dtype": st.one_of(text, st.sampled_from(["uint8", "torch.float32", "bfloat16", "object"])),
            "size_bytes": st.one_of(text, st.sampled_from(["8", "0", "-8"])),
            "device": st.sampled_from(["cpu", "cuda:0", "meta", "../.."]),
            "requires_grad": st.sampled_from(["true", "false", "perhaps"]),
            "shared.region": st.sampled_from(["0", "1", "-1", "x"]),
            "shared.offset": st.sampled_from(["0", "18446744073709551615"]),
        },
    ),
).map(TensorChunk.encode)
frames = st.lists(st.one_of(fuzzed_chunks, st.binary(max_size=64)), max_size=6)


def test_fuzzed_messages_are_answered_with_a_status_and_leave_nothing(watched):
    allowed = {
        grpc.StatusCode.OK,
        grpc.StatusCode.INVALID_ARGUMENT,
        grpc.StatusCode.RESOURCE_EXHAUSTED,
        grpc.StatusCode.FAILED_PRECONDITION,
    }

    with grpc.insecure_channel(f"127.0.0.1:{watched.port}") as channel:

        @settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.too_slow])
        @given(frames, st.sampled_from(["ReceiveTensors", "StreamTensors", "SendTensors"]))
        def fuzz(messages: list[bytes], method: str) -> None:
            call: Any
            if method == "SendTensors":
                call = channel.unary_stream(f"/kpu.torch.Service/{method}")(b"\x12" + b"".join(messages), timeout=30)
            else:
                call = channel.stream_stream(f"/kpu.torch.Service/{method}")(iter(messages), timeout=30)
            try:
                for _ in call:
                    pass
            except grpc.RpcError:
                pass
            assert call.code() in allowed, call.details()

        fuzz()
        watched.process.forget_peak_memory()
        before = watched.process.figure("VmHWM")
        fuzz()
    assert watched.process.is_alive
    wait_until(lambda: watched.holds_nothing)
    assert watched.process.figure("VmHWM") - before < 32 * MIB
    assert watched.still_works()


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(garbage=st.binary(min_size=1, max_size=300), polite=st.booleans())
def test_bytes_that_are_no_http_leave_the_server_alone(watched, garbage, polite):
    preface = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + struct.pack(">IBI", 0, 4, 0) if polite else b""
    with socket.create_connection(("127.0.0.1", watched.port), timeout=10) as connection:
        connection.sendall(preface + garbage)
    assert watched.process.is_alive


def test_descriptors_do_not_pile_up(watched, talk):
    def descriptors() -> int:
        return len(os.listdir(f"/proc/{watched.process.process.pid}/fd"))

    def failing_calls(count: int) -> None:
        for _ in range(count):
            with pytest.raises(TransferFailed):
                talk(watched.port, lambda client: client.receive_tensors(1, {"shape": "x"}))
        gc.collect()  # an exception that is kept keeps its call, and that the connection

    failing_calls(20)  # gRPC opens a few descriptors of its own as it is used
    before = descriptors()
    failing_calls(60)
    wait_until(lambda: descriptors() <= before + 10)
