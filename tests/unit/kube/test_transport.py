"""The transport: deadlines, retries and credentials, and no error that is not ours."""

import asyncio
import socket
from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

from tessera import __version__
from tessera.errors import ApiError, Conflict, ServerUnavailable, TooManyRequests, Unauthorized, Unreachable
from tessera.kube.kinds import PODS
from tessera.kube.objects import ObjectKey
from tessera.kube.requests import Request, collection_request, object_request
from tessera.kube.transport import Limits, Transport
from tests.unit.kube.canned import Canned, access_to, begin_and_cut, begin_and_hang, canned_server, hang, status
from tests.unit.kube.clocks import HastyClock

pytestmark = pytest.mark.asyncio
WEB = ObjectKey("default", "web")
GET = object_request("get", PODS, WEB)
CREATE = collection_request("create", PODS, "default", body={"kind": "Pod"})


@pytest_asyncio.fixture
async def server() -> AsyncIterator[Canned]:
    async with canned_server() as server:
        yield server


@pytest.fixture
def clock() -> HastyClock:
    return HastyClock()


@pytest_asyncio.fixture
async def transport(server: Canned, clock: HastyClock) -> AsyncIterator[Transport]:
    async with Transport(access_to(server.server), clock=clock) as transport:
        yield transport


async def collect(transport: Transport, got: list[bytes], *, silence_s: float | None) -> None:
    async with transport.stream(GET, silence_s=silence_s) as reply:
        async for chunk in reply.chunks():
            got.append(chunk)


async def test_a_request_says_who_we_are_and_how_long_we_wait(server: Canned, transport: Transport) -> None:
    server.answers()

    await transport.send(GET)

    asked = server.asked[0]
    assert asked.headers["User-Agent"] == f"tessera/{__version__}"
    assert asked.headers["Authorization"] == "Bearer token-1"
    assert asked.query["timeout"] == "30s"


async def test_a_body_is_sent_as_json(server: Canned, transport: Transport) -> None:
    server.answers(201)

    await transport.send(CREATE)

    assert (server.asked[0].method, server.bodies) == ("POST", [b'{"kind":"Pod"}'])
    assert server.asked[0].content_type == "application/json"


async def test_a_refusal_is_an_error_of_ours(server: Canned, transport: Transport) -> None:
    server.answers(409, status("Conflict"))

    with pytest.raises(Conflict, match="create pods in default"):
        await transport.send(CREATE)


async def test_a_time_that_the_server_names_is_waited_out(
    server: Canned, transport: Transport, clock: HastyClock
) -> None:
    server.answers(429, status("TooManyRequests"), Retry_After="3")
    server.answers(503, Retry_After="2")
    server.answers(200, "done")

    assert await transport.send(GET) == b"done"
    assert clock.slept_s == [3.0, 2.0]


async def test_waiting_ends_with_the_deadline(server: Canned, transport: Transport, clock: HastyClock) -> None:
    for _ in range(4):
        server.answers(429, status("TooManyRequests"), Retry_After="14")

    with pytest.raises(TooManyRequests):
        await transport.send(GET)

    assert clock.slept_s == [14.0, 14.0]


async def test_a_write_that_may_have_happened_is_not_sent_twice(server: Canned, transport: Transport) -> None:
    server.answers(503, Retry_After="1")

    with pytest.raises(ServerUnavailable):
        await transport.send(CREATE)

    assert len(server.asked) == 1


async def test_refused_credentials_are_renewed_once(server: Canned, transport: Transport) -> None:
    server.answers(401, status("Unauthorized"))
    server.answers(200, "done")

    assert await transport.send(GET) == b"done"
    assert server.asked[1].headers["Authorization"] == "Bearer token-2"


async def test_credentials_that_are_refused_again_are_told(server: Canned, transport: Transport) -> None:
    server.answers(401)
    server.answers(401)

    with pytest.raises(Unauthorized, match="renew the credentials"):
        await transport.send(GET)

    assert len(server.asked) == 2


async def test_a_redirect_does_not_carry_our_token_away(server: Canned, transport: Transport) -> None:
    server.answers(302, Location="http://elsewhere.invalid/")

    with pytest.raises(ApiError, match="answered 302"):
        await transport.send(GET)

    assert len(server.asked) == 1


async def test_nobody_at_the_other_end_is_unreachable() -> None:
    with socket.create_server(("127.0.0.1", 0)) as closed:
        port = closed.getsockname()[1]
    async with Transport(access_to(f"http://127.0.0.1:{port}")) as transport:
        with pytest.raises(Unreachable, match="get pods default/web: the API server cannot be reached"):
            await transport.send(GET)


async def test_no_answer_by_the_deadline_is_unreachable(server: Canned, transport: Transport) -> None:
    server.does(hang)
    hurried = Request(verb="get", path="/x", target="x", deadline_s=0.05)

    with pytest.raises(Unreachable, match=r"get x: no answer within 0\.05 s"):
        await transport.send(hurried)


async def test_an_answer_that_stops_half_way_is_unreachable(server: Canned, transport: Transport) -> None:
    server.does(begin_and_cut)

    with pytest.raises(Unreachable):
        await transport.send(CREATE)


async def test_a_stream_that_is_cut_gives_what_came_and_is_unreachable(server: Canned, transport: Transport) -> None:
    server.does(begin_and_cut)
    got: list[bytes] = []

    with pytest.raises(Unreachable):
        await collect(transport, got, silence_s=None)

    assert b"".join(got) == b"begun\n"


async def test_a_stream_that_falls_silent_is_unreachable(server: Canned, transport: Transport) -> None:
    server.does(begin_and_hang)
    got: list[bytes] = []

    with pytest.raises(Unreachable):
        await collect(transport, got, silence_s=0.1)

    assert b"".join(got) == b"begun\n"


async def test_a_stream_that_does_not_open_by_the_deadline_is_unreachable(server: Canned) -> None:
    server.does(hang)
    async with Transport(access_to(server.server), limits=Limits(request_s=0.05)) as transport:
        with pytest.raises(Unreachable, match="no answer within"):
            async with transport.stream(GET, silence_s=None):
                pass


async def test_cancelling_a_stream_is_no_error_of_the_server(server: Canned, transport: Transport) -> None:
    server.does(begin_and_hang)
    opened = asyncio.Event()

    async def follow() -> None:
        async with transport.stream(GET, silence_s=None) as reply:
            async for _ in reply.chunks():
                opened.set()

    task = asyncio.create_task(follow())
    await opened.wait()
    task.cancel()

    with pytest.raises(asyncio.CancelledError):
        await task
