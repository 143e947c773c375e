"""A process that answers like an API server, from bytes made beforehand, so that only the client is measured.

The first part of the path chooses: `list` and `gzip` serve pages and refuse to stream, `stream` begins a watch with
everything, `ticks` sends one change every few milliseconds, each with the time at which it was sent.
"""

import asyncio
import gzip
import json
import ssl
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

from benchmarks.kube_pods import PAGE, a_pod, an_event, initial_events, list_pages
from testbed.certificates import Authority

TICKS = 1000
TICK_S = 0.004
SENT_AT = "tessera.io/sent-at-ns"
Params = dict[str, list[str]]


class Server:
    def __init__(self, count: int) -> None:
        self._pages = list(list_pages(count))
        self._zipped = [gzip.compress(page, 1) for page in self._pages]
        self._events = list(initial_events(count))
        self._never = asyncio.Event()
        self._answers: dict[str, Callable[[Params], AsyncIterator[bytes]]] = {
            "list": lambda params: self._serve_list(params, self._pages, ""),
            "gzip": lambda params: self._serve_list(params, self._zipped, "Content-Encoding: gzip\r\n"),
            "stream": self._serve_stream,
            "ticks": self._serve_ticks,
        }

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while head := (await reader.readuntil(b"\r\n\r\n")).decode():
                url = urlsplit(head.split()[1])
                async for piece in self._answers[url.path.split("/")[1]](parse_qs(url.query)):
                    writer.write(piece)
                    await writer.drain()
        except (asyncio.IncompleteReadError, ConnectionError):
            writer.close()

    async def _serve_list(self, params: Params, pages: list[bytes], headers: str) -> AsyncIterator[bytes]:
        if "sendInitialEvents" in params:
            yield _answer("422 Unprocessable Entity", b'{"reason":"Invalid","message":"not served"}')
        elif "watch" in params:
            yield _BEGIN_STREAM
            await self._never.wait()
        else:
            page = int(params.get("continue", ["0"])[0]) // PAGE
            yield _answer("200 OK", pages[page], headers)

    async def _serve_stream(self, _: Params) -> AsyncIterator[bytes]:
        yield _BEGIN_STREAM
        for event in self._events:
            yield _chunk(event)
        await self._never.wait()

    async def _serve_ticks(self, _: Params) -> AsyncIterator[bytes]:
        yield _BEGIN_STREAM
        yield _chunk(self._events[-1])
        pod = a_pod(0)
        for tick in range(TICKS):
            await asyncio.sleep(TICK_S)
            pod["metadata"]["resourceVersion"] = str(3_000_000 + tick)
            pod["metadata"]["annotations"][SENT_AT] = str(time.monotonic_ns())
            yield _chunk(an_event("MODIFIED", pod))
        await self._never.wait()


_BEGIN_STREAM = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n"


def _answer(status: str, body: bytes, headers: str = "") -> bytes:
    head = f"HTTP/1.1 {status}\r\nContent-Type: application/json\r\n{headers}Content-Length: {len(body)}\r\n\r\n"
    return head.encode() + body


def _chunk(data: bytes) -> bytes:
    return b"%x\r\n%s\r\n" % (len(data), data)


async def main(count: int) -> None:
    context, authorities = _make_trust()
    server = await asyncio.start_server(Server(count).serve, "127.0.0.1", 0, ssl=context)
    port = server.sockets[0].getsockname()[1]
    print(json.dumps({"server": f"https://127.0.0.1:{port}", "authorities": authorities}), flush=True)
    await server.serve_forever()


def _make_trust() -> tuple[ssl.SSLContext, str]:
    """A certificate to serve with, and the authority that signed it. Their files are gone before anybody is served."""
    with tempfile.TemporaryDirectory() as folder:
        authority = Authority(Path(folder), "ca")
        context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        context.load_cert_chain(*authority.issue("server", "server", reachable_at=["127.0.0.1"]))
        return context, authority.files.certificate.read_text()


if __name__ == "__main__":
    asyncio.run(main(int(sys.argv[1])))
