"""Who may call: the token is asked for before anything is read, and TLS hides both."""

import asyncio
import subprocess
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import grpc
import numpy as np
import pytest

from kpu.client.tensor_client import TensorClient
from kpu.errors import ServerGone, Unauthenticated

TOKEN = "a-token-of-some-length"


@pytest.fixture(scope="module")
def guarded(serve: Any) -> Any:
    return serve(KPU_TOKEN=TOKEN)


def echo(port: int, data: Any, host: str = "127.0.0.1", **options: Any) -> Any:
    async def with_client() -> Any:
        async with TensorClient(host, port, **{"shared": False, **options}) as client:
            return await client.stream_tensors(data)

    (back,) = asyncio.run(with_client())
    return np.asarray(back)


def test_the_right_token_opens_the_server(guarded):
    assert echo(guarded.port, np.arange(3), token=TOKEN).tolist() == [0, 1, 2]


@pytest.mark.parametrize("size", [3, 1 << 24])
@pytest.mark.parametrize(
    ("token", "said"), [(None, "the call has none"), ("", "the call has none"), ("wrong", "not this server's")]
)
def test_without_the_right_token_the_refusal_says_where_to_find_it(guarded, token, said, size):
    with pytest.raises(Unauthenticated, match=said):
        echo(guarded.port, np.zeros(size, np.uint8), token=token)


def test_every_method_wants_the_token(guarded):
    async def each() -> Any:
        async with TensorClient("127.0.0.1", guarded.port, token="wrong", shared=False) as client:
            calls = (client.send_tensors(np.ones(3)), client.receive_tensors(), client.stream_tensors(np.ones(3)))
            return await asyncio.gather(*calls, return_exceptions=True)

    assert [type(error) for error in asyncio.run(each())] == [Unauthenticated] * 3


def test_a_call_without_a_token_is_refused_before_it_has_said_anything(guarded):
    answered = threading.Event()

    def says_nothing() -> Iterator[bytes]:
        answered.wait(60)
        yield from ()

    with grpc.insecure_channel(f"127.0.0.1:{guarded.port}") as channel:
        call: Any = channel.stream_unary("/kpu.torch.Service/ReceiveTensors").future(says_nothing())
        assert call.code() is grpc.StatusCode.UNAUTHENTICATED
        answered.set()


def test_health_needs_no_token(guarded):
    with grpc.insecure_channel(f"127.0.0.1:{guarded.port}") as channel:
        assert channel.unary_unary("/grpc.health.v1.Health/Check")(b"", timeout=10) == b"\x08\x01"


def test_a_token_may_come_from_a_file(serve, tmp_path):
    file = tmp_path / "token"
    file.write_text(TOKEN + "\n")
    server = serve("--token-file", str(file))
    assert echo(server.port, np.arange(3), token=TOKEN).tolist() == [0, 1, 2]
    with pytest.raises(Unauthenticated):
        echo(server.port, np.arange(3))


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    where = tmp_path_factory.mktemp("tls")
    certificate, key = where / "tls.crt", where / "tls.key"
    made = ["-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2"]
    names = ["-subj", "/CN=compute", "-addext", "subjectAltName=DNS:compute.default.svc,DNS:localhost"]
    files = ["-keyout", str(key), "-out", str(certificate)]
    subprocess.run(["openssl", "req", *made, *names, *files], check=True, capture_output=True)
    return certificate, key


@pytest.fixture(scope="module")
def secret(serve: Any, certificate: tuple[Path, Path]) -> Any:
    cert, key = certificate
    return serve(KPU_TOKEN=TOKEN, KPU_TLS_CERT=str(cert), KPU_TLS_KEY=str(key))


def test_tls_with_a_certificate_given_as_bytes_or_as_a_file(secret, certificate):
    path, _ = certificate
    for trust in (path, str(path), path.read_bytes()):
        assert echo(secret.port, np.arange(3), host="localhost", token=TOKEN, tls=trust).tolist() == [0, 1, 2]


def test_a_server_reached_by_another_way_is_known_by_its_name(secret, certificate):
    options = {"token": TOKEN, "tls": certificate[0], "server_name": "compute.default.svc"}
    assert echo(secret.port, np.arange(3), **options).tolist() == [0, 1, 2]


@pytest.mark.parametrize("options", [{}, {"tls": True}, {"tls": "its own", "server_name": "another.example"}])
def test_a_server_that_cannot_be_trusted_or_understood_is_a_clear_error(secret, certificate, options):
    trust = certificate[0] if options.get("tls") == "its own" else options.get("tls")
    with pytest.raises(ServerGone):
        echo(secret.port, np.arange(3), **{**options, "token": TOKEN, "tls": trust})
