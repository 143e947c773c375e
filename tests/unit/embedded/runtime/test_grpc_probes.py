"""Probes by gRPC, of servers that answer in every way."""

import asyncio
import re
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager

import grpc
import pytest

from tessera.embedded.runtime.grpc_probes import ask_health
from tessera.embedded.runtime.probes import Checker

pytestmark = pytest.mark.asyncio
HOST = "127.0.0.1"
Answer = Callable[[bytes], bytes]


class Health(grpc.GenericRpcHandler):
    """Of a server that knows one method; `answer` makes bytes of bytes."""

    def __init__(self, answer: Answer) -> None:
        self._answer = answer

    def service(self, handler_call_details):
        if handler_call_details.method != "/grpc.health.v1.Health/Check":
            return None

        async def check(request: bytes, context: grpc.aio.ServicerContext) -> bytes:
            try:
                return self._answer(request)
            except KeyError:
                return await context.abort(grpc.StatusCode.NOT_FOUND, "unknown service")

        return grpc.unary_unary_rpc_method_handler(check)


@asynccontextmanager
async def serving(*handlers: grpc.GenericRpcHandler) -> AsyncIterator[int]:
    """The port."""
    server = grpc.aio.server(handlers=handlers)
    port = server.add_insecure_port(f"{HOST}:0")
    await server.start()
    try:
        yield port
    finally:
        await server.stop(0)


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        (b"\x08\x01", ""),
        (b"\x08\x02", 'service unhealthy (responded with "NOT_SERVING")'),
        (b"\x08\x03", 'service unhealthy (responded with "SERVICE_UNKNOWN")'),
        (b"", 'service unhealthy (responded with "UNKNOWN")'),
        (b"\x08\x63", 'service unhealthy (responded with "UNKNOWN")'),
        (b"hello there", 'service unhealthy (responded with "UNKNOWN")'),
    ],
)
async def test_only_a_server_that_says_that_it_serves_passes(answer: bytes, said: str):
    async with serving(Health(lambda _: answer)) as port:
        assert await ask_health(HOST, port, "", 5) == said


@pytest.mark.parametrize("service", ["", "kpu.torch.Service", "long" * 100])
async def test_the_service_is_named_as_the_protocol_wants_it(service: str):
    asked: list[bytes] = []

    def note(request: bytes) -> bytes:
        asked.append(request)
        return b"\x08\x01"

    async with serving(Health(note)) as port:
        await ask_health(HOST, port, service, 5)
    name = service.encode()
    length = bytes([len(name)]) if len(name) < 128 else bytes([len(name) & 0x7F | 0x80, len(name) >> 7])
    assert asked == [b"\x0a" + length + name if name else b""]


async def test_a_service_that_the_server_does_not_know_is_told():
    async with serving(Health(lambda _: {}[b""])) as port:
        said = await ask_health(HOST, port, "other", 5)
    assert said == "error: health rpc probe failed: rpc error: code = NOT_FOUND desc = unknown service"


async def test_a_server_without_a_health_service_is_told():
    async with serving() as port:
        said = await ask_health(HOST, port, "", 5)
    assert said == "error: this server does not implement the grpc health protocol (grpc.health.v1.Health)"


async def test_nobody_there_is_told_and_heals_when_somebody_comes():
    async with serving(Health(lambda _: b"\x08\x01")) as port:
        pass
    said = await ask_health(HOST, port, "", 2)
    assert re.match(rf'error: failed to connect service "{HOST}:{port}" within 2s: ', said)
    server = grpc.aio.server(handlers=(Health(lambda _: b"\x08\x01"),))
    server.add_insecure_port(f"{HOST}:{port}")
    await server.start()
    assert await ask_health(HOST, port, "", 2) == ""
    await server.stop(0)


@asynccontextmanager
async def silence() -> AsyncIterator[int]:
    """The port of a server that takes connections and says nothing."""
    over = asyncio.Event()

    async def say_nothing(_reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await over.wait()
        writer.close()

    server = await asyncio.start_server(say_nothing, HOST, 0)
    try:
        yield server.sockets[0].getsockname()[1]
    finally:
        over.set()
        server.close()


async def test_a_server_that_says_nothing_is_not_waited_for_forever():
    async with silence() as port:
        said = await ask_health(HOST, port, "", 0.3)
    assert said == "timeout: health rpc did not complete within 0.3s"


async def test_a_probe_that_runs_out_of_time_says_so_in_the_words_of_grpc():
    async def run(_command: Sequence[str], _timeout_s: float) -> tuple[int, str]:
        return 0, ""

    async with silence() as port:
        said = await Checker({}, HOST, run).check({"grpc": {"port": port}, "timeoutSeconds": 1})
    assert said == "timeout: health rpc did not complete within 1s"
