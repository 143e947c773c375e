"""The line to the server of one Compute: opened when it is needed, closed with the Compute, opened anew after trouble.

It belongs to no event loop. It is opened in a thread, once for all who ask, and whoever gives up asking leaves it to
the others. A line that was replaced lives as long as the calls that use it.
"""

import asyncio
import threading
import weakref
from concurrent.futures import Future
from dataclasses import dataclass, replace

from kubernetes.client import ApiException

from kpu.client.api import message_of
from kpu.client.computes import Computes
from kpu.client.connecting import LEAST_S, Access, Attempt, Route, open_client
from kpu.client.deadlines import Deadline
from kpu.client.models import KpuV1alpha1Compute
from kpu.client.tensor_client import TensorClient
from kpu.client.threads import arrival, start
from kpu.client.transfers import LastTransfer
from kpu.errors import ReadyTimeout, ServerGone, Unreachable

CONNECT_S = 30.0
"""A server that says it is ready gets at most so long to be reached."""
MARGIN_S = 4 * LEAST_S
"""How much longer than agreed the opening of a line may take, so that it can say itself what is wrong."""


@dataclass(frozen=True)
class Opened:
    """A connection, and what it was made for: another Compute of the same name is another Compute."""

    client: TensorClient
    route: Route
    access: Access
    uid: str | None

    def is_for(self, attempt: Attempt, access: Access) -> bool:
        """A token that has just been removed is still the server's, until there is another and it was started anew."""
        is_the_same = self.uid == attempt.compute.metadata.uid
        is_allowed = self.access == replace(access, token=access.token or self.access.token)
        return is_the_same and is_allowed and attempt.still_leads_there(self.route, access)


class Line:
    """`transfer` outlives the connections: it is what the last of them did."""

    def __init__(self, host: str | None, port: int) -> None:
        self._host = host
        self._port = port
        self._guard = threading.Lock()
        self._opened: Opened | None = None
        self._opening: Future[Opened] | None = None
        self._closings = 0
        self.transfer = LastTransfer()

    @property
    def client(self) -> TensorClient | None:
        """None unless the line is open."""
        opened = self._opened
        return opened.client if opened else None

    async def open(self, compute: KpuV1alpha1Compute, computes: Computes, deadline: Deadline) -> TensorClient:
        """The client of an open line: the one that there is, if it still leads to this Compute, or a new one."""
        attempt = Attempt(compute, computes, Deadline.after(deadline.share(CONNECT_S)))
        try:
            async with asyncio.timeout(attempt.deadline.left_s + MARGIN_S):
                return await self._arrive(attempt)
        except (TimeoutError, ApiException) as error:
            if not attempt.deadline.has_passed:
                raise
            raise ReadyTimeout(
                f"Compute {computes.namespace}/{attempt.name} is ready, but it could not be connected to within "
                f"{deadline if deadline.has_passed else attempt.deadline}: "
                f"{message_of(error) if isinstance(error, ApiException) else 'nothing answered'}"
            ) from error

    def drop(self, failed: TensorClient) -> None:
        """Have the next who asks connect anew, unless somebody has. Calls of others come to an end of their own."""
        with self._guard:
            if self._opened is not None and self._opened.client is failed:
                self._opened = None

    async def close(self) -> None:
        with self._guard:
            opened, self._opened, self._opening = self._opened, None, None
            self._closings += 1
        if opened is not None:
            try:
                await opened.client.close()
            finally:
                opened.route.close()

    async def _arrive(self, attempt: Attempt) -> TensorClient:
        """With the attempt of another who is at it; where he had less time than we have, with our own."""
        while True:
            opening, is_ours = self._join(attempt)
            try:
                return (await arrival(opening)).client
            except (Unreachable, ApiException):
                if is_ours:
                    raise

    def _join(self, attempt: Attempt) -> tuple[Future[Opened], bool]:
        with self._guard:
            if self._opening is not None and not self._opening.done():
                return self._opening, False
            closings = self._closings
            self._opening = start(lambda: self._renew(attempt, closings))
            return self._opening, True

    def _renew(self, attempt: Attempt, closings: int) -> Opened:
        """In a thread. Whatever others did to the line meanwhile stands."""
        access = attempt.access()
        while True:
            old = self._opened
            new = old if old is not None and old.is_for(attempt, access) else self._connect(attempt, access)
            with self._guard:
                if self._closings == closings and (new is not old or self._opened is old):
                    self._opened = new
                    return new
            if self._closings != closings:
                new.route.close()
                raise ServerGone(f"the connection to Compute {attempt.name} was closed while it was being opened")

    def _connect(self, attempt: Attempt, access: Access) -> Opened:
        route = attempt.route(access, self._host, self._port)
        try:
            client = open_client(route, access)
        except ValueError:
            route.close()
            raise
        client.transfer = self.transfer
        weakref.finalize(client, route.close).atexit = False
        return Opened(client, route, access, attempt.compute.metadata.uid)
