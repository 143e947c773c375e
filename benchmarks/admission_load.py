"""Asks a webhook as an API server does: over a few TLS connections that are kept, one review at a time on each.

Reads one question per line and prints how many were answered each second. Written on bare sockets, so that asking costs
less than answering: what a server of canned bytes answers is the ceiling of this.
"""

import argparse
import asyncio
import itertools
import ssl
import sys
import time
from collections.abc import Iterator
from typing import cast

import uvloop

CONNECTIONS = 8
WARM_UP_S = 1.0
PATIENCE_S = 30.0


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("host")
    parser.add_argument("port", type=int)
    parser.add_argument("--authority", required=True, help="the file that verifies the webhook")
    parser.add_argument("--for-s", type=float, default=10.0)
    asked = parser.parse_args()
    questions = [request_of(line.strip(), asked.host) for line in sys.stdin.buffer]
    print(uvloop.run(ask_for_a_while(asked, questions)))


def request_of(body: bytes, host: str) -> bytes:
    head = ("POST /webhook HTTP/1.1", f"Host: {host}", "Content-Type: application/json", f"Content-Length: {len(body)}")
    return "\r\n".join(head).encode() + b"\r\n\r\n" + body


def message_length(received: bytearray) -> int | None:
    """How long the first message is, head and body; None while its head is not complete."""
    end = received.find(b"\r\n\r\n")
    if end < 0:
        return None
    head = bytes(received[:end]).lower()
    begin = head.index(b"content-length:") + 15
    return end + 4 + int(head[begin:].partition(b"\r\n")[0])


async def ask_for_a_while(asked: argparse.Namespace, questions: list[bytes]) -> float:
    """Answers each second, once everybody is warm."""
    loop, tls = asyncio.get_running_loop(), ssl.create_default_context(cafile=asked.authority)
    endless = itertools.cycle(questions)
    await until_listened_on(asked.host, asked.port)
    askers = [
        (await loop.create_connection(lambda: Asker(endless), asked.host, asked.port, ssl=tls))[1]
        for _ in range(CONNECTIONS)
    ]
    await asyncio.sleep(WARM_UP_S)
    began, before = time.perf_counter(), sum(asker.answers for asker in askers)
    await asyncio.sleep(asked.for_s)
    assert not any(asker.refused for asker in askers), "the webhook refused what it should allow"
    return (sum(asker.answers for asker in askers) - before) / (time.perf_counter() - began)


async def until_listened_on(host: str, port: int) -> None:
    async with asyncio.timeout(PATIENCE_S):
        while True:
            try:
                _, writer = await asyncio.open_connection(host, port)
            except ConnectionRefusedError:
                await asyncio.sleep(0.05)
            else:
                writer.close()
                return


class Asker(asyncio.Protocol):
    def __init__(self, questions: Iterator[bytes]) -> None:
        self._questions = questions
        self._received = bytearray()
        self.answers = 0
        self.refused = 0

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        self._transport.write(next(self._questions))

    def data_received(self, data: bytes) -> None:
        self._received += data
        length = message_length(self._received)
        if length is None or len(self._received) < length:
            return
        self.answers += 1
        self.refused += b'"allowed":true' not in self._received[:length]
        del self._received[:length]
        self._transport.write(next(self._questions))


if __name__ == "__main__":
    main()
