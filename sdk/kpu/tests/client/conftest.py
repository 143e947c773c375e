"""An API server that can be made to misbehave, which a real one cannot. It knows one Compute.

A misbehaviour is for the next request that its `wants` accepts. Without one the server does what is right: an apply is
merged and counted, a read shows it, a watch tells of every later change.
"""

import json
import threading
from collections.abc import Callable, Iterator, Mapping
from concurrent import futures
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, NamedTuple
from urllib.parse import parse_qs, urlsplit

import grpc
import pytest
from kubernetes import client

from kpu.client import Compute, cluster, init

Json = dict[str, Any]
PATIENCE_S = 30


class Request(NamedTuple):
    method: str
    path: str
    query: Mapping[str, str]
    headers: Mapping[str, str]
    body: Json | None

    @property
    def is_watch(self) -> bool:
        return self.query.get("watch") == "true"


@dataclass
class Misbehaviour:
    """`content` is sent as it is; for a watch it is cut off there. `held` is awaited before anything is sent."""

    wants: Callable[[Request], bool]
    status: int = 200
    content: bytes = b""
    held: threading.Event | None = None
    times: int = 1


@dataclass
class ApiServer:
    compute: Json | None = None
    objects: dict[str, Json] = field(default_factory=dict[str, Json])
    """By path: what else can be read, such as a Secret or a list of pods."""
    requests: list[Request] = field(default_factory=list[Request])
    url: str = ""

    def __post_init__(self) -> None:
        self._version = 0
        self._news = threading.Condition()
        self._misbehaviours: list[Misbehaviour] = []
        self._is_ending = False

    def misbehave(self, wants: Callable[[Request], bool], **how: Any) -> None:
        self._misbehaviours.append(Misbehaviour(wants, **how))

    def refuse(self, method: str, status: int, message: str, times: int = 1) -> None:
        content = json.dumps({"kind": "Status", "code": status, "message": message, "details": {"name": "x"}}).encode()
        self.misbehave(lambda request: request.method == method, status=status, content=content, times=times)

    def change(self, alter: Callable[[Json], None]) -> None:
        """As another client would, or the operator."""
        with self._news:
            assert self.compute is not None
            alter(self.compute)
            self._stamp()

    def set_conditions(self, *conditions: Json, generation: int | None = None) -> None:
        def alter(compute: Json) -> None:
            about = generation or compute["metadata"]["generation"]
            status = {"conditions": [*conditions], "observedGeneration": about}
            compute["status"] = {**compute.get("status", {}), **status}

        self.change(alter)

    def remove(self) -> None:
        with self._news:
            self.compute = None
            self._version += 1
            self._news.notify_all()

    def asked(self, method: str) -> list[Request]:
        return [request for request in self.requests if request.method == method and not request.is_watch]

    def wait_for(self, wants: Callable[[Request], bool]) -> None:
        with self._news:
            assert self._news.wait_for(lambda: any(wants(one) for one in self.requests), PATIENCE_S)

    def answer(self, request: Request) -> tuple[int, Json | None]:
        with self._news:
            match request.method:
                case "PATCH" if self._is_about_another(request.body or {}):
                    return 409, {"kind": "Status", "code": 409, "message": "uid mismatch"}
                case "PATCH":
                    self._merge(request.body or {})
                case "DELETE" if self.compute is not None:
                    gone, self.compute = self.compute, None
                    self._version += 1
                    self._news.notify_all()
                    return 200, gone
                case _:
                    pass
            found = self.objects.get(request.path, self.compute if "/computes" in request.path else None)
            found = _selected(found, request.query.get("fieldSelector", ""))
            return (200, found) if found is not None else (404, {"kind": "Status", "code": 404, "details": {}})

    def note(self, request: Request) -> Misbehaviour | None:
        with self._news:
            self.requests.append(request)
            self._news.notify_all()
            for one in self._misbehaviours:
                if one.times and one.wants(request):
                    one.times -= 1
                    return one
        return None

    def events(self, since: int) -> Iterator[Json]:
        """Each later state of the Compute, as far as it is seen."""
        seen = since
        while True:
            with self._news:
                while self._version <= seen and not self._is_ending:
                    self._news.wait(PATIENCE_S)
                if self._is_ending:
                    return
                seen = self._version
                shown = json.loads(json.dumps(self.compute))
            if shown is None:
                yield {"type": "DELETED", "object": {"metadata": {}}}
                return
            yield {"type": "MODIFIED", "object": shown}

    def end(self) -> None:
        with self._news:
            self._is_ending = True
            self._news.notify_all()

    def _is_about_another(self, body: Json) -> bool:
        """A uid in what is applied says which object it is about."""
        wanted = body.get("metadata", {}).get("uid")
        return wanted is not None and wanted != (self.compute or {"metadata": {"uid": None}})["metadata"]["uid"]

    def _merge(self, body: Json) -> None:
        old = self.compute or {"metadata": {"uid": "uid-1", "generation": 0}, "spec": None}
        metadata = {**old["metadata"], **body.get("metadata", {})}
        metadata["generation"] += old["spec"] != body.get("spec", old["spec"])
        self.compute = {**old, **body, "metadata": metadata}
        self._stamp()

    def _stamp(self) -> None:
        self._version += 1
        assert self.compute is not None
        self.compute["metadata"]["resourceVersion"] = str(self._version)
        self._news.notify_all()


def _selected(found: Json | None, selector: str) -> Json | None:
    """Of a list of events, those about one object, as that is all that is ever asked for."""
    field, _, name = selector.partition("=")
    if found is None or field != "involvedObject.name":
        return found
    return {**found, "items": [one for one in found["items"] if one["involvedObject"]["name"] == name]}


class Health(grpc.GenericRpcHandler):
    """`answer` to a health check, or none where the server has no such service."""

    def __init__(self, answer: bytes) -> None:
        self.answer = answer
        self.metadata = dict[str, str | bytes]()

    def service(self, handler_call_details):
        self.metadata = dict(handler_call_details.invocation_metadata)
        if not self.answer or handler_call_details.method != "/grpc.health.v1.Health/Check":
            return None
        return grpc.unary_unary_rpc_method_handler(lambda _request, _context: self.answer)


@pytest.fixture(scope="session")
def answering() -> Iterator[Callable[[bytes], tuple[Health, int]]]:
    """Starts servers that answer health checks and nothing else, and tells their ports."""
    servers: list[grpc.Server] = []

    def start(answer: bytes) -> tuple[Health, int]:
        health = Health(answer)
        server = grpc.server(futures.ThreadPoolExecutor(2))
        server.add_generic_rpc_handlers([health])
        port = server.add_insecure_port("127.0.0.1:0")
        server.start()
        servers.append(server)
        return health, port

    yield start
    for server in servers:
        server.stop(0).wait()


@pytest.fixture(scope="session")
def here(answering: Callable[[bytes], tuple[Health, int]]) -> Json:
    """Where Computes of tests that send no tensors are: something there says that it serves."""
    return {"host": "127.0.0.1", "port": answering(b"\x08\x01")[1]}


@contextmanager
def api_server() -> Iterator[ApiServer]:
    server = ApiServer()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def handle_request(self) -> None:
            parts = urlsplit(self.path)
            query = {key: values[-1] for key, values in parse_qs(parts.query).items()}
            length = int(self.headers.get("Content-Length") or 0)
            body = json.loads(self.rfile.read(length)) if length else None
            request = Request(self.command, parts.path, query, {k.lower(): v for k, v in self.headers.items()}, body)
            try:
                self._respond(request, server.note(request))
            except OSError:
                self.close_connection = True

        def __getattr__(self, name: str) -> Any:
            if name.startswith("do_"):
                return self.handle_request
            raise AttributeError(name)

        def _respond(self, request: Request, wrong: Misbehaviour | None) -> None:
            if wrong is not None and wrong.held is not None:
                wrong.held.wait(PATIENCE_S)
            if wrong is None and request.is_watch:
                self._stream(server.events(int(request.query["resourceVersion"])))
            elif wrong is None or not (wrong.content or wrong.status != 200):
                status, document = server.answer(request)
                self._send(status, json.dumps(document).encode())
            elif request.is_watch and wrong.status == 200:
                self._send_head(200, "Transfer-Encoding", "chunked")
                self._send_piece(wrong.content)
                self.close_connection = True
            else:
                self._send(wrong.status, wrong.content)

        def _stream(self, events: Iterator[Json]) -> None:
            self._send_head(200, "Transfer-Encoding", "chunked")
            for event in events:
                self._send_piece(json.dumps(event).encode() + b"\n")
            self.wfile.write(b"0\r\n\r\n")

        def _send(self, status: int, content: bytes) -> None:
            self._send_head(status, "Content-Length", str(len(content)))
            self.wfile.write(content)

        def _send_head(self, status: int, header: str, value: str) -> None:
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header(header, value)
            self.end_headers()
            self.wfile.flush()

        def _send_piece(self, content: bytes) -> None:
            self.wfile.write(f"{len(content):x}\r\n".encode() + content + b"\r\n")
            self.wfile.flush()

        def log_message(self, format: str, *args: Any) -> None:
            pass

    listening = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    listening.daemon_threads = True
    thread = threading.Thread(target=listening.serve_forever, args=[0.05], daemon=True)
    thread.start()
    server.url = f"http://127.0.0.1:{listening.server_address[1]}"
    try:
        yield server
    finally:
        server.end()
        listening.shutdown()
        listening.server_close()
        thread.join()


@pytest.fixture
def fresh(monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """`init`, as in a process where nobody has called it yet."""
    monkeypatch.setattr(cluster, "_made", [])
    return init


@pytest.fixture
def api() -> Iterator[ApiServer]:
    """A server that nobody was told of."""
    with api_server() as server:
        yield server


@pytest.fixture
def server(
    fresh: Callable[..., None], api: ApiServer, configuration_for: Callable[[str], client.Configuration]
) -> ApiServer:
    """The cluster of this test's Computes."""
    fresh(client_config=configuration_for(api.url), namespace="lab")
    return api


@pytest.fixture
def compute(server: ApiServer, here: Json) -> Compute:
    """Applied, and about nothing known yet. Its operator explains itself, and there is nothing to look for."""
    made = Compute("worker", **here)
    server.set_conditions(condition("Ready", "False", "StatefulSetNotReady"), condition("Stalled", "False", "Fine"))
    return made


@pytest.fixture
def configuration_for() -> Callable[[str], client.Configuration]:
    def configure(url: str) -> client.Configuration:
        configuration = client.Configuration()
        configuration.host = url
        return configuration

    return configure


@pytest.fixture
def says() -> Callable[..., Json]:
    """One condition of a Compute."""
    return condition


def condition(of_type: str, status: str, reason: str, message: str = "", **more: Any) -> Json:
    return {"type": of_type, "status": status, "reason": reason, "message": message, **more}
