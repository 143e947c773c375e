"""Events, as `kubectl describe` shows them: what we tell people about their objects.

Telling never waits and never fails. What is told stands in a queue of bounded length until it is written; when the API
server is away for long, the newest is let go and counted. `event_series` decides what is worth writing.
"""

import asyncio
from collections import deque
from datetime import UTC, datetime
from uuid import uuid4

import msgspec
import structlog

from tessera.errors import KubeError, NotFound, ServerFailed, TooManyRequests, Unreachable
from tessera.kube.client import Client
from tessera.kube.event_series import Correlator, Entry, EventLevel, ObjectReference, Occurrence
from tessera.kube.kinds import EVENTS
from tessera.kube.objects import Document
from tessera.kube.timing import SYSTEM_CLOCK, Backoff, Clock

log: structlog.stdlib.BoundLogger = structlog.get_logger(__name__)

MOST_WAITING = 1000
MOST_TRIES = 12
MOST_NAME = 200
PASSING = (Unreachable, ServerFailed, TooManyRequests)


class Counts(msgspec.Struct, kw_only=True):
    """Since the start. `dropped` found the queue full, `limited` came from an object that said enough."""

    written: int = 0
    limited: int = 0
    dropped: int = 0
    failed: int = 0


class Recorder:
    """`run` belongs in a TaskGroup of the caller. `component` is who speaks, `host` where it runs."""

    def __init__(
        self,
        client: Client,
        *,
        component: str,
        host: str = "",
        backoff: Backoff | None = None,
        clock: Clock = SYSTEM_CLOCK,
    ) -> None:
        self._client = client
        self._component = component
        self._host = host
        self._backoff = backoff or Backoff()
        self._clock = clock
        self._waiting: deque[tuple[Occurrence, datetime]] = deque()
        self._stirred = asyncio.Event()
        self._idle = asyncio.Event()
        self._idle.set()
        self._correlator = Correlator()
        self.counts = Counts()

    def normal(self, about: ObjectReference, reason: str, message: str) -> None:
        self._record("Normal", about, reason, message)

    def warning(self, about: ObjectReference, reason: str, message: str) -> None:
        self._record("Warning", about, reason, message)

    async def drained(self) -> None:
        """Wait until all that was told is written or let go."""
        await self._idle.wait()

    async def run(self) -> None:
        while True:
            while self._waiting:
                await self._tell(*self._waiting[0])
                self._waiting.popleft()
            self._idle.set()
            self._stirred.clear()
            await self._stirred.wait()

    def _record(self, level: EventLevel, about: ObjectReference, reason: str, message: str) -> None:
        if len(self._waiting) >= MOST_WAITING:
            self.counts.dropped += 1
            return
        occurrence = Occurrence(about=about, level=level, reason=reason, message=message)
        self._waiting.append((occurrence, self._clock.wall()))
        self._idle.clear()
        self._stirred.set()

    async def _tell(self, occurrence: Occurrence, at: datetime) -> None:
        entry = self._correlator.plan(occurrence, self._clock.monotonic_s())
        if entry is None:
            self.counts.limited += 1
            return
        for tries in range(1, MOST_TRIES + 1):
            try:
                await self._write(entry, occurrence.about, at)
            except PASSING as error:
                log.warning("event not written", reason=occurrence.reason, error=str(error), tries=tries)
                await self._clock.sleep(self._backoff.wait_s(tries))
            except KubeError as error:
                log.warning("event refused", reason=occurrence.reason, error=str(error))
                break
            else:
                self.counts.written += 1
                return
        self.counts.failed += 1

    async def _write(self, entry: Entry, about: ObjectReference, at: datetime) -> None:
        namespace = about.namespace or "default"
        if entry.name:
            more = {"count": entry.count, "lastTimestamp": _second(at), "message": entry.message}
            try:
                await self._client.patch(EVENTS, entry.name, more, namespace=namespace)
            except NotFound:
                entry = self._correlator.vanished(entry)
            else:
                self._correlator.written(entry, entry.name)
                return
        name = f"{about.name[:MOST_NAME]}.{uuid4().hex[:16]}"
        await self._client.create(EVENTS, self._document(entry, name, about, at), namespace=namespace)
        self._correlator.written(entry, name)

    def _document(self, entry: Entry, name: str, about: ObjectReference, at: datetime) -> Document:
        return {
            "apiVersion": "v1",
            "kind": "Event",
            "metadata": {"name": name, "namespace": about.namespace or "default"},
            "involvedObject": about,
            "type": entry.key.level,
            "reason": entry.key.reason,
            "message": entry.message,
            "count": entry.count,
            "firstTimestamp": _second(at),
            "lastTimestamp": _second(at),
            "source": {"component": self._component, "host": self._host},
            "reportingComponent": self._component,
            "reportingInstance": self._host,
        }


def _second(at: datetime) -> str:
    return at.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
