"""Figures of the server, in Prometheus' text format on a port of their own.

Written by hand: a dozen counters do not warrant a dependency in a client library.
"""

import asyncio
import re
import socket
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field

_HELP = {
    "kpu_calls_total": ("counter", "Calls that ended, by method and gRPC status."),
    "kpu_calls_in_flight": ("gauge", "Calls that are under way."),
    "kpu_tensors_total": ("counter", "Tensors that came or went whole, by direction and path."),
    "kpu_tensor_bytes_total": ("counter", "Bytes of those tensors."),
    "kpu_stored_tensors": ("gauge", "Tensors that are kept."),
    "kpu_stored_bytes": ("gauge", "Bytes of the tensors that are kept."),
    "kpu_evicted_tensors_total": ("counter", "Kept tensors that left to make room."),
    "kpu_under_way_bytes": ("gauge", "Bytes of tensors that are being received, processed or sent."),
    "kpu_memory_limit_bytes": ("gauge", "Bytes that tensors may take in all."),
}
_REQUEST_SECONDS = 10.0
ANY_ADDRESS = "::"

Labels = tuple[tuple[str, str], ...]


@dataclass
class Metrics:
    """Counted as things happen; gauges are asked for when somebody looks."""

    gauges: Callable[[], dict[str, float]]
    _counts: Counter[tuple[str, Labels]] = field(default_factory=Counter[tuple[str, Labels]])

    def count(self, name: str, amount: int = 1, **labels: str) -> None:
        self._counts[name, tuple(labels.items())] += amount

    def tensor(self, direction: str, path: str, size: int) -> None:
        labels = (("direction", direction), ("path", path))
        self._counts["kpu_tensors_total", labels] += 1
        self._counts["kpu_tensor_bytes_total", labels] += size

    def text(self) -> str:
        gauges: dict[tuple[str, Labels], float] = {(name, ()): value for name, value in self.gauges().items()}
        samples = {**gauges, **self._counts}
        lines: list[str] = []
        for name, (kind, meaning) in _HELP.items():
            lines += (f"# HELP {name} {meaning}", f"# TYPE {name} {kind}")
            lines += [f"{name}{_shown(labels)} {value:.15g}" for (own, labels), value in samples.items() if own == name]
        return "\n".join(lines) + "\n"


async def serve_metrics(metrics: Metrics, host: str, port: int) -> asyncio.Server:
    """Answer GET /metrics, whatever is asked of it; anything else is not there."""

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            async with asyncio.timeout(_REQUEST_SECONDS):
                head = await reader.readuntil(b"\r\n\r\n")
                method, _, target = head.partition(b"\r\n")[0].partition(b" ")
                found = (method, re.split(rb"[ ?]", target)[0]) == (b"GET", b"/metrics")
                body = metrics.text().encode() if found else b"try /metrics\n"
                status = b"200 OK" if found else b"404 Not Found"
                kind = b"Content-Type: text/plain; version=0.0.4; charset=utf-8\r\n"
                length = b"Content-Length: %d\r\nConnection: close\r\n\r\n" % len(body)
                writer.write(b"HTTP/1.1 " + status + b"\r\n" + kind + length + body)
                await writer.drain()
        except (TimeoutError, OSError, asyncio.IncompleteReadError, asyncio.LimitOverrunError):
            pass  # whoever asked did not ask properly, or has left
        finally:
            writer.close()

    bare = host.strip("[]")
    if bare == ANY_ADDRESS:
        return await asyncio.start_server(answer, sock=_listen_everywhere(port))
    return await asyncio.start_server(answer, bare, port)


def _listen_everywhere(port: int) -> socket.socket:
    """One socket for both kinds of addresses, or for the older kind where the machine has no other.

    Asyncio alone would take "::" for the newer kind only.
    """
    try:
        return socket.create_server((ANY_ADDRESS, port), family=socket.AF_INET6, dualstack_ipv6=True)
    except (OSError, ValueError):
        return socket.create_server(("0.0.0.0", port))


def _shown(labels: Labels) -> str:
    inner = ",".join(f'{key}="{value}"' for key, value in labels)
    return f"{{{inner}}}" if inner else ""
