"""A web server around our handler, in the test process: what an app will mount at POST /webhook."""

import asyncio
import json
import ssl
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from tessera.admission import Webhook


class WebhookServer:
    """`asked` are the names of the pods that an API server asked about, each over a connection of its own."""

    def __init__(self, host: str, port: int, context: ssl.SSLContext, webhook: Webhook) -> None:
        self.asked: list[str] = []
        asked = self.asked

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                asked.append(json.loads(body)["request"]["object"]["metadata"].get("name", ""))
                answer = asyncio.run(webhook.handle(body))
                self.send_response(answer.status)
                self.send_header("Content-Type", answer.content_type)
                self.send_header("Content-Length", str(len(answer.body)))
                self.end_headers()
                self.wfile.write(answer.body)

            def log_message(self, format: str, *arguments: object) -> None:
                """Keep quiet; a test asks for what was asked."""

        self._server = ThreadingHTTPServer((host, port), Handler)
        self._server.daemon_threads = True
        self._server.socket = context.wrap_socket(self._server.socket, server_side=True, do_handshake_on_connect=False)
        self.url = f"https://{host}:{self._server.server_port}"

    @contextmanager
    def running(self) -> Iterator["WebhookServer"]:
        thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.05})
        thread.start()
        try:
            yield self
        finally:
            self._server.shutdown()
            thread.join()
            self._server.server_close()
