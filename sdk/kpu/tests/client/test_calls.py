"""One client in the hands of many: calls that end each other, loops that come and go, servers that send too much."""

import asyncio
import contextlib
import gc
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from concurrent import futures
from pathlib import Path
from typing import Any

import grpc
import numpy as np
import pytest

from kpu.client import MalformedMessage, ServerGone, TensorClient, TransferFailed, TransferTimeout, empty
from kpu.client.statuses import as_failure
from kpu.errors import BypassClosed
from kpu.tensors import take
from kpu.torch.server import TensorServer
from kpu.torch.settings import read_settings
from kpu.wire.bypass import CLOSED
from kpu.wire.splitting import split

PATIENCE_S = 20


@pytest.fixture(scope="module")
def tensor_server(serve):
    return serve()


@pytest.fixture
def silent() -> Iterator[int]:
    """The port of something that takes connections and says nothing."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        yield listener.getsockname()[1]


@pytest.mark.parametrize("shared", [False, True])
def test_closing_the_client_ends_the_calls_of_others_with_an_error_and_does_not_cancel_them(silent, shared):
    async def main() -> None:
        client = TensorClient("127.0.0.1", silent, shared=shared)
        calls = [
            asyncio.ensure_future(client.send_tensors(np.ones(3))),
            asyncio.ensure_future(client.stream_tensors(np.ones(3), np.ones(4))),
            asyncio.ensure_future(client.receive_tensors(2)),
        ]
        await asyncio.sleep(0.1)
        await client.close()
        ended = await asyncio.wait_for(asyncio.gather(*calls, return_exceptions=True), PATIENCE_S)
        assert [type(error) for error in ended] == [ServerGone] * 3
        assert "was closed while a call was under way" in str(ended[0])

    asyncio.run(main())


def test_a_call_that_its_own_task_gives_up_is_cancelled(silent):
    async def main() -> None:
        async with TensorClient("127.0.0.1", silent) as client:
            call = asyncio.ensure_future(client.send_tensors(np.ones(3)))
            await asyncio.sleep(0.1)
            call.cancel()
            with pytest.raises(asyncio.CancelledError):
                await call

    asyncio.run(main())


class Capsule:
    """Speaks DLPack alone, and only when it is let. Counts how often it was asked."""

    def __init__(self, array: np.ndarray) -> None:
        self.array = array
        self.let = threading.Event()
        self.asked = threading.Semaphore(0)
        self.times = 0

    def __dlpack__(self, **options: Any) -> Any:
        self.times += 1
        self.asked.release()
        assert self.let.wait(PATIENCE_S)
        return self.array.__dlpack__(**options)

    def __dlpack_device__(self) -> Any:
        return self.array.__dlpack_device__()


def test_a_client_that_is_closed_while_a_tensor_is_made_ready_says_so(tensor_server):
    async def main() -> None:
        client = TensorClient("127.0.0.1", tensor_server.port)
        await client.send_tensors(np.ones(3))
        capsule = Capsule(np.ones(3))
        call = asyncio.ensure_future(client.send_tensors(capsule))
        assert await asyncio.to_thread(capsule.asked.acquire, timeout=PATIENCE_S)
        await client.close()
        capsule.let.set()
        with pytest.raises(ServerGone, match="was closed while a call was under way"):
            await call
        await client.close()

    asyncio.run(main())


def test_a_lone_tensor_that_does_not_go_by_shared_memory_is_taken_once(tensor_server, talk):
    capsule = Capsule(np.ones(3))
    capsule.let.set()
    (back,) = talk(tensor_server.port, lambda client: client.stream_tensors(capsule), shared=True)
    assert np.array_equal(np.asarray(back), np.ones(3))
    assert capsule.times == 1


def test_loops_that_have_ended_leave_neither_connections_nor_threads(tensor_server):
    client = TensorClient("127.0.0.1", tensor_server.port)
    threads = threading.active_count()
    for _ in range(4):
        asyncio.run(client.send_tensors(np.ones(3)))
    gc.collect()
    wait_until(lambda: connections_to(tensor_server.port) <= 1)
    asyncio.run(client.close())
    wait_until(lambda: threading.active_count() <= threads)


IN_A_FORK = """
import asyncio, os, signal, sys
import numpy as np
from kpu.client import TensorClient, TransferFailed

client = TensorClient("127.0.0.1", int(sys.argv[1]))
assert asyncio.run(client.send_tensors(np.ones(3))).success
pid = os.fork()
if pid:
    sys.exit(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
signal.alarm(20)
for mine in (client, TensorClient("127.0.0.1", int(sys.argv[1]))):
    try:
        asyncio.run(mine.send_tensors(np.ones(3)))
    except TransferFailed as error:
        print(error)
os._exit(0)
"""


def test_a_forked_child_is_told_that_it_cannot_call(tensor_server):
    command = [sys.executable, "-c", IN_A_FORK, str(tensor_server.port)]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, timeout=60, check=True)
    assert done.stdout.count('which does not survive a fork: start processes with the method "spawn"') == 2


def test_a_token_is_taken_without_the_line_end_of_its_file(serve, talk):
    server = serve(KPU_TOKEN="secret")
    assert talk(server.port, lambda client: client.send_tensors(np.ones(3)), token="secret\n").success


@pytest.mark.parametrize("token", ["se\ncret", "s\u00e9cret", "se\0cret"])
def test_a_token_that_no_call_can_carry_is_refused_where_the_client_is_made(token):
    with pytest.raises(ValueError, match="expected printable ASCII") as refused:
        TensorClient("127.0.0.1", 1, token=token)
    assert "cret" not in str(refused.value)


@pytest.fixture
def sending() -> Iterator[Callable[[int], int]]:
    """A server that sends so many tensors to whoever asks for some, and tells its port."""
    with contextlib.ExitStack() as started:

        def start(count: int) -> int:
            def send(_request: object, _context: object) -> Iterator[bytes]:
                for number in range(count):
                    yield from split(f"tensor_{number}", take(np.ones(3)), 1 << 20)

            handlers = {
                "SendTensors": grpc.unary_stream_rpc_method_handler(send),
                "StreamTensors": grpc.stream_stream_rpc_method_handler(send),
            }
            server = grpc.server(futures.ThreadPoolExecutor(2))
            server.add_generic_rpc_handlers([grpc.method_handlers_generic_handler("kpu.torch.Service", handlers)])
            port = server.add_insecure_port("127.0.0.1:0")
            server.start()
            started.callback(lambda: server.stop(0).wait())
            return port

        yield start


@pytest.mark.parametrize("many", [3, sys.maxsize])
def test_a_server_that_sends_more_tensors_than_were_asked_for_is_not_read_to_its_end(sending, many, talk):
    port = sending(many)
    for use in (lambda client: client.receive_tensors(2), lambda client: client.stream_tensors(np.ones(3), np.ones(3))):
        with pytest.raises(MalformedMessage, match="sent more than 2 tensors, expected 2"):
            talk(port, use)


def test_a_server_that_sends_fewer_tensors_than_were_asked_for_is_told_of(sending, talk):
    with pytest.raises(MalformedMessage, match="sent 1 tensors, expected 2"):
        talk(sending(1), lambda client: client.receive_tensors(2))


def test_a_call_whose_shared_memory_the_server_does_not_know_is_made_again_without(tensor_server):
    """As it is when the server has closed its end between the offer of a tensor and the call."""
    sent = np.ones(1 << 20)

    async def main() -> None:
        async with TensorClient("127.0.0.1", tensor_server.port) as client:
            await client.send_tensors(sent)
            assert client.transfer.stats
            assert client.transfer.stats.path == "shared-memory"
            assert client._meeting
            assert client._meeting._visit
            client._meeting._visit.session = "0" * 32
            assert (await client.send_tensors(sent)).success
            assert client.transfer.stats.path == "grpc"
            for tensors in ([sent], [sent, sent]):
                back = await client.stream_tensors(*tensors)
                assert all(np.array_equal(np.asarray(one), sent) for one in back)
                assert len(back) == len(tensors)

    asyncio.run(main())


def test_a_call_that_is_made_again_leaves_each_of_its_tensors_once_in_the_server():
    """The first of them has arrived when the second turns out to lie where the server cannot see it."""
    small, large = np.ones(3), np.ones(1 << 20)

    async def main() -> None:
        server = TensorServer(read_settings(["--host", "127.0.0.1", "--port", "0"], {}))
        async with TensorClient("127.0.0.1", await server.start()) as client:
            await client.send_tensors(large)
            assert client._meeting
            assert client._meeting._visit
            client._meeting._visit.session = "0" * 64
            response = await client.send_tensors(small, large)
            assert client.transfer.stats
            assert client.transfer.stats.path == "grpc"
            assert list(server.memory.kept)[1:] == list(response.received_tensor_ids)
        await server.stop()

    asyncio.run(main())


def test_elements_that_begin_between_their_places_arrive_as_they_are(tensor_server, talk):
    """Legal in numpy: a view of shared memory that begins at any byte."""
    memory = np.asarray(empty((1 << 20) + 3, "uint8"))
    memory[:] = np.arange(memory.size) % 251
    view = memory[3:].view("int32")
    (back,) = talk(tensor_server.port, lambda client: client.stream_tensors(view), shared=True)
    assert np.array_equal(np.asarray(back), view)


def test_each_status_has_a_class_and_a_sentence():
    late = as_failure(grpc.StatusCode.DEADLINE_EXCEEDED, "Deadline Exceeded", "gpu:1")
    assert type(late) is TransferTimeout
    assert str(late).startswith("the call to the server at gpu:1 took too long: Deadline Exceeded; ")
    gone = as_failure(grpc.StatusCode.UNAVAILABLE, None, "gpu:1")
    assert type(gone) is ServerGone
    assert str(gone).startswith("the server at gpu:1 is not there or went away: unavailable; ")
    strange = as_failure(grpc.StatusCode.UNIMPLEMENTED, "{no}", "gpu:1")
    assert type(strange) is TransferFailed
    assert str(strange) == "the server at gpu:1 refused: {no}; is it a kpu-torch-server?"
    assert type(as_failure(grpc.StatusCode.FAILED_PRECONDITION, CLOSED, "gpu:1")) is BypassClosed
    assert type(as_failure(grpc.StatusCode.FAILED_PRECONDITION, "no", "gpu:1")) is TransferFailed


def connections_to(port: int) -> int:
    rows = (line.split() for line in Path("/proc/net/tcp").read_text().splitlines()[1:])
    return sum(row[2].endswith(f":{port:04X}") and row[3] == "01" for row in rows)


def wait_until(holds: Callable[[], bool]) -> None:
    until_s = time.monotonic() + PATIENCE_S
    while not holds():
        assert time.monotonic() < until_s, "it did not come about"
        time.sleep(0.02)
