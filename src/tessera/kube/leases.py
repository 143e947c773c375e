"""Leader election on a Lease, so that one replica writes, and the next only when the last cannot any more.

Every write of the Lease carries the resourceVersion that was seen, so that of two replicas that want it one gets it.
`may_write` is answered from our own clock and the time of our last renewal, counted from before it was sent: when the
API server is out of reach, the answer turns to no by itself, in time. A name is used by one election only: whoever
comes back is somebody else.
"""

import asyncio
import random
from uuid import uuid4

import msgspec
import structlog

from tessera.engine import fencing
from tessera.engine.fencing import Fence, Term
from tessera.errors import AlreadyExists, Conflict, InvalidPolicy, KubeError, NotFound
from tessera.kube.client import Client
from tessera.kube.lease_records import (
    LEASE_RECORDS,
    Lease,
    Observation,
    acquisition,
    lease_document,
    may_acquire,
    observe,
    release,
    renewal,
)
from tessera.kube.objects import Document, ObjectKey
from tessera.kube.timing import SYSTEM_CLOCK, Chance, Clock

log: structlog.stdlib.BoundLogger = structlog.get_logger(__name__)


class Pace(msgspec.Struct, frozen=True, kw_only=True):
    """How often to try, how long one try may take, and how long to lead without a renewal; seconds."""

    retry_s: float = 2.0
    request_s: float = 3.0
    renew_deadline_s: float = 10.0


class Election:
    """`run` belongs in a TaskGroup of the caller. An orderly stop ends the work, cancels `run` and calls `resign`."""

    def __init__(
        self,
        client: Client,
        lease: ObjectKey,
        name: str,
        *,
        fence: Fence | None = None,
        pace: Pace | None = None,
        clock: Clock = SYSTEM_CLOCK,
        chance: Chance = random.random,
    ) -> None:
        self.fence = fence or Fence()
        self._pace = pace or Pace()
        if self._pace.renew_deadline_s >= self.fence.lease_duration:
            raise InvalidPolicy(
                f"lease {lease}: renew_deadline_s is {self._pace.renew_deadline_s:g},"
                f" expected less than the lease's duration of {self.fence.lease_duration:g} s"
            )
        self.holder = f"{name}_{uuid4().hex[:12]}"
        self._client = client.within(self._pace.request_s)
        self._writing = asyncio.Lock()
        self._lease = lease
        self._clock = clock
        self._chance = chance
        self._seen: Observation | None = None
        self._term: Term | None = None
        self._granted_at_s: float | None = None
        self._is_resigned = False
        self._leading = asyncio.Event()
        self._following = asyncio.Event()
        self._following.set()
        self.previous: Term | None = None
        self.epoch = 0

    @property
    def is_leader(self) -> bool:
        return self._term is not None

    def may_write(self) -> bool:
        """Whether a write may start now. Ask before each; a yes is good for a write sent at once."""
        now_s = self._clock.monotonic_s()
        if self._term is None or not fencing.may_write(self._term, self.holder, now_s, self.fence):
            return False
        self._granted_at_s = now_s
        return True

    def may_read_state(self) -> bool:
        """Whether what we read now is final: nothing that our predecessor sent can land any more."""
        return self.is_leader and fencing.may_read_state(self.previous, self._clock.monotonic_s(), self.fence)

    async def gained(self) -> None:
        await self._leading.wait()

    async def lost(self) -> None:
        await self._following.wait()

    async def run(self) -> None:
        while not self._is_resigned:
            async with self._writing:
                await self._try_once()
            await self._clock.sleep(self._pace.retry_s * (0.8 + 0.4 * self._chance()))

    async def resign(self) -> None:
        """Start no write any more, and give the lease back once what was allowed has landed or failed."""
        self._is_resigned = True
        async with self._writing:
            led = self.is_leader
            self._follow("resigned")
            if led and self._seen is not None:
                await self._release(self._seen)

    async def _release(self, seen: Observation) -> None:
        if self._granted_at_s is not None:
            landed_at_s = self._granted_at_s + self.fence.write_timeout
            await self._clock.sleep(max(0.0, landed_at_s - self._clock.monotonic_s()))
        try:
            await self._write(seen, release())
        except KubeError as error:
            log.warning("lease not released, it will run out", lease=str(self._lease), error=str(error))

    async def _try_once(self) -> None:
        if self._is_resigned:
            return
        try:
            if self._term is not None and self._seen is not None:
                await self._renew(self._term, self._seen)
            else:
                await self._run_for_it()
        except KubeError as error:
            log.warning("lease not written", lease=str(self._lease), leader=self.is_leader, error=str(error))
        if self._term and self._clock.monotonic_s() >= self._term.renewed_at + self._pace.renew_deadline_s:
            self._follow("not renewed in time")

    async def _renew(self, term: Term, seen: Observation) -> None:
        sent_at_s = self._clock.monotonic_s()
        try:
            await self._write(seen, renewal(self._clock.wall()))
        except Conflict:
            await self._look()
            if self._seen is None or self._seen.holder != self.holder:
                self._follow("taken by another")
            return
        self._term = msgspec.structs.replace(term, renewed_at=sent_at_s)

    async def _run_for_it(self) -> None:
        await self._look()
        sent_at_s = self._clock.monotonic_s()
        if not self._is_ours(self._seen) and not may_acquire(self._seen, sent_at_s, self.fence):
            return
        if not self._is_ours(self._seen):
            self.previous = self._seen.term if self._seen else None
        spec = acquisition(self.holder, self._seen, self.fence, self._clock.wall())
        try:
            await (self._create(spec) if self._seen is None else self._write(self._seen, spec))
        except (Conflict, AlreadyExists):
            return
        self._lead(Term(holder=self.holder, acquired_at=sent_at_s, renewed_at=sent_at_s), spec["leaseTransitions"])

    async def _look(self) -> None:
        """Read the lease. One that was deleted is free only once its last holder's time is over."""
        try:
            self._see(await self._client.get(LEASE_RECORDS, self._lease.name, namespace=self._lease.namespace))
        except NotFound:
            if self._is_ours(self._seen) or may_acquire(self._seen, self._clock.monotonic_s(), self.fence):
                self._seen = None

    async def _create(self, spec: Document) -> None:
        body = lease_document(self._lease.name, spec)
        self._see(await self._client.create(LEASE_RECORDS, body, namespace=self._lease.namespace))

    async def _write(self, seen: Observation, spec: Document) -> None:
        body = {"metadata": {"resourceVersion": seen.resource_version}, "spec": spec}
        self._see(await self._client.patch(LEASE_RECORDS, self._lease.name, body, namespace=self._lease.namespace))

    def _see(self, lease: Lease) -> None:
        self._seen = observe(self._seen, lease, self._clock.monotonic_s())

    def _is_ours(self, seen: Observation | None) -> bool:
        """Also when our own acquisition seemed to fail and landed all the same."""
        return seen is not None and seen.holder == self.holder

    def _lead(self, term: Term, epoch: int) -> None:
        self._term = term
        self.epoch = epoch
        self._following.clear()
        self._leading.set()
        log.info("leading", lease=str(self._lease), holder=self.holder, epoch=epoch)

    def _follow(self, why: str) -> None:
        if self._term is None:
            return
        self.previous, self._term = self._term, None
        self._leading.clear()
        self._following.set()
        log.warning("no longer leading", lease=str(self._lease), holder=self.holder, why=why)
