"""The line to the server of one Compute: opened when it is needed, closed with the Compute, opened anew after trouble.

It belongs to no event loop. It is opened in a thread, once for all who ask, and whoever gives up asking leaves it to
the others.
"""

import threading
import time
from concurrent.futures import Future
from typing import NamedTuple

from kpu.client.computes import Computes
from kpu.client.connecting import Route, access_to, chosen_route, find_route, open_client
from kpu.client.models import KpuV1alpha1Compute
from kpu.client.tensor_client import TensorClient
from kpu.client.threads import arrival, start
from kpu.client.transfers import LastTransfer

CONNECT_S = (5.0, 30.0)
"""A server that says it is ready gets so long to be reached, at least and at most."""


class Opened(NamedTuple):
    client: TensorClient
    route: Route


class Line:
    """`transfer` outlives the connections: it is what the last of them did."""

    def __init__(self, host: str | None, port: int) -> None:
        self._host = host
        self._port = port
        self._guard = threading.Lock()
        self._opening: Future[Opened] | None = None
        self.transfer = LastTransfer()

    @property
    def client(self) -> TensorClient | None:
        """None unless the line is open."""
        opening = self._opening
        return opening.result().client if opening is not None and _has_succeeded(opening) else None

    async def open(self, compute: KpuV1alpha1Compute, computes: Computes, until_s: float) -> None:
        with self._guard:
            if self._opening is None or _has_failed(self._opening):
                self._opening = start(lambda: self._connect(compute, computes, until_s))
            opening = self._opening
        self.transfer = (await arrival(opening)).client.transfer

    async def close(self) -> None:
        with self._guard:
            opening, self._opening = self._opening, None
        if opening is None or _has_failed(opening):
            return
        if not opening.done():
            opening.add_done_callback(_hang_up)
            return
        try:
            await opening.result().client.close()
        finally:
            _hang_up(opening)

    def _connect(self, compute: KpuV1alpha1Compute, computes: Computes, until_s: float) -> Opened:
        access = access_to(compute, computes)
        if self._host is not None:
            route = chosen_route(compute, self._host, self._port)
        else:
            route = find_route(compute, computes, access, self._port, _deadline(until_s, time.monotonic()))
        return Opened(open_client(route, access), route)


def _deadline(until_s: float, now_s: float) -> float:
    least_s, most_s = CONNECT_S
    return min(max(until_s, now_s + least_s), now_s + most_s)


def _hang_up(opening: Future[Opened]) -> None:
    if _has_succeeded(opening):
        opening.result().route.close()


def _has_succeeded(opening: Future[Opened]) -> bool:
    return opening.done() and opening.exception() is None


def _has_failed(opening: Future[Opened]) -> bool:
    return opening.done() and opening.exception() is not None
