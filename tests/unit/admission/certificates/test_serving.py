"""Connections are shown the newest certificate, and those that stand stay."""

import asyncio
import ssl
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta

import pytest

from tessera.admission.certificates.authorities import issue_serving, make_authority
from tessera.admission.certificates.serving import ServingContext, follow_files
from tessera.errors import CredentialsFailed
from tessera.kube.tls import Certificate
from tests.unit.kube.clocks import FakeClock

NOW, DAY = datetime.now(UTC), timedelta(days=1)


def a_certificate() -> tuple[Certificate, Certificate]:
    """An authority, and a certificate that it signed for this machine."""
    authority = make_authority(NOW, DAY)
    return authority, issue_serving(authority, ["127.0.0.1", "localhost"], NOW, DAY)


async def echo(reader, writer):
    while line := await reader.readline():
        writer.write(line)
    writer.close()


@asynccontextmanager
async def a_server(serving):
    server = await asyncio.start_server(echo, "127.0.0.1", 0, ssl=serving.context)
    async with server:
        yield server.sockets[0].getsockname()[1]


@asynccontextmanager
async def connected(port, authority, server_name):
    trust = ssl.create_default_context(cadata=authority.chain.decode())
    reader, writer = await asyncio.open_connection("127.0.0.1", port, ssl=trust, server_hostname=server_name)
    yield reader, writer
    writer.close()
    await writer.wait_closed()


async def is_alive(connection):
    reader, writer = connection
    writer.write(b"hello\n")
    return await reader.readline() == b"hello\n"


def shown_to(connection):
    return connection[1].get_extra_info("ssl_object").getpeercert(binary_form=True)


@pytest.mark.asyncio
@pytest.mark.parametrize("server_name", ["localhost", "127.0.0.1"])
async def test_a_new_certificate_is_shown_and_old_connections_stay(server_name):
    serving = ServingContext()
    (first_authority, first), (second_authority, second) = a_certificate(), a_certificate()
    serving.use(first)
    async with a_server(serving) as port, connected(port, first_authority, server_name) as old:
        assert await is_alive(old)
        assert serving.use(second)
        async with connected(port, second_authority, server_name) as new:
            assert await is_alive(new)
            assert shown_to(new) != shown_to(old)
        assert await is_alive(old)


def test_the_same_certificate_is_no_change():
    serving = ServingContext()
    _, certificate = a_certificate()
    assert [serving.use(certificate), serving.use(certificate)] == [True, False]


@pytest.mark.asyncio
async def test_without_a_certificate_connections_are_refused():
    authority, _ = a_certificate()
    async with a_server(ServingContext()) as port:
        with pytest.raises((ssl.SSLError, ConnectionError)):
            async with connected(port, authority, "localhost"):
                pass


def test_a_certificate_that_cannot_be_used_leaves_the_old_one():
    serving = ServingContext()
    (_, first), (_, second) = a_certificate(), a_certificate()
    serving.use(first)
    with pytest.raises(CredentialsFailed, match="serving certificate: cannot be used"):
        serving.use(Certificate(first.chain, second.key))
    assert not serving.use(first)


@pytest.mark.asyncio
async def test_files_are_followed_through_what_cannot_be_read(tmp_path):
    (_, first), (_, second) = a_certificate(), a_certificate()
    rounds = iter([(first.chain, first.key), (first.chain, b"half written"), (second.chain, second.key)])
    serving, clock = ServingContext(), FakeClock()
    following = asyncio.create_task(follow_files(tmp_path, serving, clock=clock))
    await clock.until_asleep()  # there were no files at all
    for chain, key in rounds:
        (tmp_path / "tls.crt").write_bytes(chain)
        (tmp_path / "tls.key").write_bytes(key)
        clock.advance(10)
        await clock.until_asleep()
    following.cancel()
    assert not serving.use(second)
