"""The peer of our webhook: a Starlette webhook that allows everything, and the ceiling of whoever asks, canned bytes.

Both over TLS as our own. The first reads the question as JSON and answers with its UID; the second looks for the end of
a question and no further, so that what is measured is the asking.
"""

import asyncio
import ssl
import sys
from pathlib import Path
from typing import cast

import uvloop
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.routing import Route

from benchmarks.admission_load import message_length
from tessera.apps.serving import Listener, serve_all

CANNED = b'{"response":{"uid":"x","allowed":true}}'
HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n" % len(CANNED)


async def allow(request: Request) -> JSONResponse:
    review = await request.json()
    response = {"uid": review["request"]["uid"], "allowed": True}
    return JSONResponse({"apiVersion": review["apiVersion"], "kind": "AdmissionReview", "response": response})


class Canned(asyncio.Protocol):
    def __init__(self) -> None:
        self._received = bytearray()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)

    def data_received(self, data: bytes) -> None:
        self._received += data
        length = message_length(self._received)
        if length is not None and len(self._received) >= length:
            del self._received[:length]
            self._transport.write(HEAD + CANNED)


async def serve_canned(host: str, port: int, tls: ssl.SSLContext) -> None:
    server = await asyncio.get_running_loop().create_server(Canned, host, port, ssl=tls)
    await server.serve_forever()


def main(kind: str, host: str, port: str, directory: str) -> None:
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    tls.load_cert_chain(Path(directory) / "tls.crt", Path(directory) / "tls.key")
    if kind == "canned":
        uvloop.run(serve_canned(host, int(port), tls))
    else:
        app = Starlette(routes=[Route("/webhook", allow, methods=["POST"])])
        uvloop.run(serve_all(Listener(app, host, int(port), tls)))


if __name__ == "__main__":
    main(*sys.argv[1:])
