import asyncio

import pytest

from tessera.embedded.runtime.probes import Checker, Tally, Timing

pytestmark = pytest.mark.asyncio


def checker(container=None, code=0):
    async def run(command, timeout_s):  # noqa: ARG001
        if command == ["hang"]:
            await asyncio.sleep(60)
        return code, "said no"

    return Checker(container or {}, "127.0.0.1", run)


async def test_a_verdict_changes_after_answers_that_agree():
    tally = Tally(Timing(success_threshold=2, failure_threshold=3))
    answers = [True, True, False, False, True, False, False, False, True, True]
    assert [tally.count(answer) for answer in answers] == [None, True, None, None, None, None, None, False, None, True]


@pytest.mark.parametrize(
    ("line", "why"),
    [
        (b"HTTP/1.1 200 OK", ""),
        (b"HTTP/1.1 302 Found", ""),
        (b"HTTP/1.1 503 Busy", "HTTP probe failed with statuscode: 503"),
        (b"SSH-2.0-x", "the answer is not HTTP"),
    ],
)
async def test_a_request_passes_when_it_is_answered_well(line, why):
    asked = []

    async def answer(reader, writer):
        asked.append(await reader.readuntil(b"\r\n\r\n"))
        writer.write(line + b"\r\n\r\n")
        writer.close()

    async with await asyncio.start_server(answer, "127.0.0.1", 0) as server:
        port = server.sockets[0].getsockname()[1]
        named = checker({"ports": [{"name": "http", "containerPort": port}]})
        probe = {"httpGet": {"path": "/up", "port": "http", "httpHeaders": [{"name": "X-A", "value": "b"}]}}
        assert await named.check(probe) == why
    assert asked[0].startswith(b"GET /up HTTP/1.1\r\n")
    assert b"X-A: b\r\n" in asked[0]


async def test_a_connection_passes_where_somebody_listens():
    async with await asyncio.start_server(lambda _, writer: writer.close(), "127.0.0.1", 0) as server:
        port = server.sockets[0].getsockname()[1]
        assert await checker().check({"tcpSocket": {"port": port}}) == ""
    assert "Connect call failed" in await checker().check({"tcpSocket": {"port": port}})


async def test_a_command_passes_with_exit_code_zero():
    assert await checker().check({"exec": {"command": ["true"]}}) == ""
    assert await checker(code=2).check({"exec": {"command": ["x"]}}) == "command ended with exit code 2: said no"


async def test_no_answer_in_time_is_a_failure():
    why = await checker().check({"exec": {"command": ["hang"]}, "timeoutSeconds": 0.01})
    assert why == "no answer within 0.01 s"


async def test_a_port_that_the_container_does_not_have_is_named():
    assert 'port is "web"' in await checker().check({"tcpSocket": {"port": "web"}})


async def test_another_kind_of_probe_is_refused_in_a_sentence():
    said = await checker().check({"carrierPigeon": {"port": 1}})
    assert said == "carrierPigeon is asked for, expected exec, httpGet, tcpSocket or grpc"
