"""An API server that answers as it is told, inside the test process: for what a real one does only now and then."""

import json
import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from email.message import Message
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Callable, NamedTuple, Optional, Union
from urllib.parse import parse_qsl, urlsplit


class Request(NamedTuple):
    method: str
    path: str
    query: dict[str, str]
    body: Any
    headers: dict[str, str]


class Failure(NamedTuple):
    """An answer that is none."""

    status: int
    message: str
    name: str = ""
    plain: bool = False

    def content(self) -> bytes:
        if self.plain:
            return self.message.encode()
        details = {"name": self.name} if self.name else {}
        status = {"kind": "Status", "status": "Failure", "message": self.message, "code": self.status}
        return json.dumps({**status, "details": details}).encode()


class Stream(NamedTuple):
    """Pieces of a body that takes its time. `until` is awaited after the last piece; `broken` ends it in the middle."""

    pieces: tuple[bytes, ...]
    broken: bool = False
    until: Optional[threading.Event] = None


Answer = Union[dict[str, Any], Failure, Stream, str]
Answering = Union[Answer, Callable[[Request], Answer]]


class ApiServer:
    """Answers by method and path. Of a list of answers the last one stays."""

    def __init__(self) -> None:
        self.url = ""
        self.requests: list[Request] = []
        self.ended = threading.Event()
        self._answers: list[tuple[str, re.Pattern[str], list[Answering]]] = []

    def on(self, method: str, path: str, *answers: Answering) -> None:
        """The newest rule for a path comes first; a path is a regular expression."""
        self._answers.insert(0, (method, re.compile(path), list(answers)))

    def asked(self, method: str, path: str) -> list[Request]:
        return [one for one in self.requests if one.method == method and re.fullmatch(path, one.path)]

    def answer(self, request: Request) -> Answer:
        self.requests.append(request)
        for method, path, answers in self._answers:
            if method == request.method and path.fullmatch(request.path):
                chosen = answers.pop(0) if len(answers) > 1 else answers[0]
                return chosen(request) if callable(chosen) else chosen
        return Failure(404, "404 page not found", plain=True)


@contextmanager
def running() -> Iterator[ApiServer]:
    server = ApiServer()
    listening = ThreadingHTTPServer(("127.0.0.1", 0), _handler(server))
    listening.daemon_threads = True
    thread = threading.Thread(target=listening.serve_forever, args=[0.02], daemon=True)
    thread.start()
    server.url = f"http://127.0.0.1:{listening.server_address[1]}"
    try:
        yield server
    finally:
        server.ended.set()
        listening.shutdown()
        listening.server_close()
        thread.join()


def _lower(headers: Message) -> dict[str, str]:
    return {name.lower(): value for name, value in headers.items()}


def _handler(server: ApiServer) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def handle_one(self) -> None:
            parts = urlsplit(self.path)
            content = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            body = json.loads(content) if content.startswith(b"{") else content.decode()
            request = Request(self.command, parts.path, dict(parse_qsl(parts.query)), body, _lower(self.headers))
            answer = server.answer(request)
            if isinstance(answer, Stream):
                with suppress(OSError):  # nobody listens any more
                    self._stream(answer)
            elif isinstance(answer, Failure):
                self._send(answer.status, answer.content())
            else:
                status = 201 if self.command == "POST" and self.path.startswith("/apis/") else 200
                self._send(status, answer.encode() if isinstance(answer, str) else json.dumps(answer).encode())

        do_GET = do_POST = do_PATCH = do_DELETE = handle_one  # noqa: N815 # the names are the server's

        def _stream(self, stream: Stream) -> None:
            self._head(200, "Transfer-Encoding", "chunked")
            for piece in stream.pieces:
                self.wfile.write(f"{len(piece):x}\r\n".encode() + piece + b"\r\n")
                self.wfile.flush()
            if stream.until is not None:
                while not stream.until.wait(0.01) and not server.ended.is_set():
                    pass
            if stream.broken:
                self.close_connection = True
            else:
                self.wfile.write(b"0\r\n\r\n")

        def _send(self, status: int, content: bytes) -> None:
            self._head(status, "Content-Length", str(len(content)))
            self.wfile.write(content)

        def _head(self, status: int, header: str, value: str) -> None:
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header(header, value)
            self.end_headers()
            self.wfile.flush()

        def log_message(self, format: str, *args: Any) -> None:
            pass

    return Handler
