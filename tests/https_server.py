"""An HTTPS server inside the test process, for API servers to call."""

import ssl
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import NamedTuple, Self


class Said(NamedTuple):
    status: int
    body: bytes
    content_type: str = "application/json"


Answer = Callable[[str, bytes], Said]
"""Given the path and the body; each request in a thread of its own."""


class HttpsServer:
    def __init__(self, host: str, context: ssl.SSLContext, answer: Answer) -> None:
        self._server = ThreadingHTTPServer((host, 0), _handler(answer))
        self._server.daemon_threads = True
        self._server.socket = context.wrap_socket(self._server.socket, server_side=True, do_handshake_on_connect=False)
        self.port = self._server.server_port
        self.url = f"https://{host}:{self.port}"

    @contextmanager
    def running(self) -> Iterator[Self]:
        thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.05})
        thread.start()
        try:
            yield self
        finally:
            self._server.shutdown()
            thread.join()
            self._server.server_close()


def _handler(answer: Answer) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            said = answer(self.path.partition("?")[0], body)
            with suppress(OSError):  # nobody waits for an answer that comes too late
                self._send(said)

        do_POST = do_GET  # noqa: N815 # the name is the server's

        def _send(self, said: Said) -> None:
            self.send_response(said.status)
            self.send_header("Content-Type", said.content_type)
            self.send_header("Content-Length", str(len(said.body)))
            self.end_headers()
            self.wfile.write(said.body)

        def log_message(self, format: str, *arguments: object) -> None:
            """Keep quiet; a test asks for what was asked."""

    return Handler
