"""What a listener answers: JSON, or a status and a sentence."""

import asyncio
import os
import signal
import socket
import ssl
from datetime import UTC, datetime
from typing import Any

import pytest
from prometheus_client import CollectorRegistry, Gauge

from tessera.admission.certificates.pod_local import make_pod_local
from tessera.apps import serving
from tessera.apps.serving import Listener, either, make_app, serve_all
from tessera.errors import InvalidRequest, NotReady
from tessera.kube.tls import load_chain
from tests.unit.apps.asking import ask

pytestmark = pytest.mark.asyncio


async def echo(body: bytes) -> bytes:
    return body


async def unreadable(body: bytes) -> bytes:
    raise InvalidRequest(f"{body.decode()} cannot be read")


async def unready(_: bytes) -> bytes:
    raise NotReady("in a moment")


async def test_an_answer_is_json_and_a_body_that_cannot_be_read_is_the_askers_fault():
    app = make_app({"/echo": echo, "/no": unreadable}, is_ready=lambda: True)
    assert await ask(app, "POST", "/echo", b"{}") == (200, "application/json", b"{}")
    assert await ask(app, "POST", "/no", b"it") == (400, "text/plain; charset=utf-8", b"it cannot be read\n")


async def test_who_is_not_ready_says_so_by_status():
    app = make_app({"/ask": unready}, is_ready=lambda: False)
    statuses = [(await ask(app, *what)).status for what in (("POST", "/ask"), ("GET", "/readyz"), ("GET", "/healthz"))]
    assert statuses == [503, 503, 200]


async def test_a_query_leads_to_the_verb_that_it_is_for_and_any_other_does_no_harm():
    app = make_app({"/ask": echo, "/ask?gently": unreadable}, is_ready=lambda: True)
    paths = ("/ask", "/ask?gently", "/ask?timeout=3s", "/asked")
    assert [(await ask(app, "POST", path)).status for path in paths] == [200, 400, 200, 404]
    assert (await ask(app, "GET", "/ask")).status == 405


async def test_who_hangs_up_before_the_question_is_out_is_answered_nothing():
    said = list[Any]()

    async def receive() -> dict[str, Any]:
        return {"type": "http.disconnect"}

    async def send(message: Any) -> None:
        said.append(message)

    app = make_app({"/ask": echo}, is_ready=lambda: True)
    await app({"type": "http", "method": "POST", "path": "/ask", "query_string": b""}, receive, send)
    assert said == []


async def test_a_body_that_is_too_large_is_refused():
    app = make_app({"/echo": echo}, is_ready=lambda: True, most_bytes=3)
    assert (await ask(app, "POST", "/echo", b"123")).status == 200
    assert (await ask(app, "POST", "/echo", b"1234")).status == 413


async def test_a_peer_that_does_not_hang_up_does_not_keep_us_from_stopping(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(serving, "STOP_S", 0.2)
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    made = make_pod_local(["localhost"], datetime.now(UTC))
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    load_chain(context, made.serving)
    trust = ssl.create_default_context(cadata=made.authority.decode())
    server = asyncio.create_task(serve_all(Listener(make_app(is_ready=lambda: True), "127.0.0.1", port, context)))
    await asyncio.sleep(0)
    silent = await asyncio.to_thread(_shake_hands, port, trust)
    os.kill(os.getpid(), signal.SIGTERM)
    async with asyncio.timeout(10):
        await server
    silent.close()


def _shake_hands(port: int, trust: ssl.SSLContext) -> ssl.SSLSocket:
    return trust.wrap_socket(socket.create_connection(("127.0.0.1", port), 5), server_hostname="localhost")


async def test_metrics_are_shown_where_there_are_any():
    registry = CollectorRegistry()
    Gauge("cards", "How many.", registry=registry).set(8)
    shown = await ask(make_app(is_ready=lambda: True, metrics=registry), "GET", "/metrics")
    assert b"cards 8.0" in shown.body
    assert (await ask(make_app(is_ready=lambda: True), "GET", "/metrics")).status == 404


async def test_the_second_is_asked_about_what_the_first_cannot_read():
    assert await either(unreadable, echo)(b"it") == b"it"
    assert await either(echo, unreadable)(b"it") == b"it"
    with pytest.raises(InvalidRequest, match="it cannot be read"):
        await either(unreadable, unreadable)(b"it")
    with pytest.raises(NotReady):
        await either(unready, echo)(b"it")
