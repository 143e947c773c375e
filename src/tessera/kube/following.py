"""Leading by somebody else's Lease: we lead exactly while the process beside us does.

kube-scheduler elects its own leader, and each asks the extender beside it. So the extender that decides must be the one
beside the leading kube-scheduler, and a second election could only disagree. The Lease is read about once a second and
never written.

Nobody tells us when a renewal was written. It was after the last read that did not show it, so it counts from there,
and our time as a leader never outlasts the holder's. `may_write` also wants a fresh read: whoever takes the Lease
early, because it was given back, is noticed within `stale_s`. A successor knows that, and reads no state before the
last write of its predecessor, which may have been ourselves before a restart, has landed or failed.
"""

import asyncio
from collections.abc import Callable
from typing import Protocol

import msgspec
import structlog

from tessera.engine import fencing
from tessera.engine.fencing import Fence, Term
from tessera.errors import KubeError, NotFound
from tessera.kube.client import Client
from tessera.kube.lease_records import LEASE_RECORDS, NO_SPEC, LeaseSpec
from tessera.kube.objects import ObjectKey
from tessera.kube.timing import SYSTEM_CLOCK, Clock

log: structlog.stdlib.BoundLogger = structlog.get_logger(__name__)
LOOK_EVERY_S = 1.0
REQUEST_S = 2.0
STALE_S = 3.0


class Leading(Protocol):
    """What a leader asks of whatever made it one: an `Election`, or `Following`."""

    epoch: int

    @property
    def is_leader(self) -> bool: ...
    def may_write(self) -> bool: ...
    def may_read_state(self) -> bool: ...
    async def gained(self) -> None: ...
    async def lost(self) -> None: ...
    async def run(self) -> None: ...


class Sighting(msgspec.Struct, frozen=True, kw_only=True):
    """What the lease says, when that was first asked for, and when it was last.

    `renewed_at_s` is the latest moment before which the record cannot have been written; None, while it is not known.
    """

    spec: LeaseSpec
    first_s: float
    last_s: float
    renewed_at_s: float | None

    @property
    def tenure(self) -> tuple[str, int]:
        """What changes when somebody else takes over, and only then."""
        return self.spec.holder_identity or "", self.spec.lease_transitions or 0


def sight(before: Sighting | None, spec: LeaseSpec, sent_s: float) -> Sighting:
    """Take in what a read said that was sent at `sent_s`."""
    if before is None:
        return Sighting(spec=spec, first_s=sent_s, last_s=sent_s, renewed_at_s=None)
    if before.spec == spec:
        return msgspec.structs.replace(before, last_s=sent_s)
    return Sighting(spec=spec, first_s=sent_s, last_s=sent_s, renewed_at_s=before.last_s)


class Following:
    """Stands where an `Election` may. `is_ours` knows the holder beside us by its name."""

    def __init__(
        self,
        client: Client,
        lease: ObjectKey,
        is_ours: Callable[[str], bool],
        *,
        fence: Fence | None = None,
        look_every_s: float = LOOK_EVERY_S,
        stale_s: float = STALE_S,
        clock: Clock = SYSTEM_CLOCK,
    ) -> None:
        self._client = client.within(REQUEST_S)
        self._lease = lease
        self._is_ours = is_ours
        self._fence = fence or Fence()
        self._look_every_s = look_every_s
        self._stale_s = stale_s
        self._clock = clock
        self._seen: Sighting | None = None
        self._tenure: tuple[str, int] | None = None
        self._since_s = 0.0
        self._leading = asyncio.Event()
        self._following = asyncio.Event()
        self._following.set()
        self.epoch = 0

    @property
    def is_leader(self) -> bool:
        return self._tenure is not None

    def may_write(self) -> bool:
        """Whether a write may start now: the holder's time cannot be over before it lands, and we looked just now."""
        seen, now_s = self._seen, self._clock.monotonic_s()
        if not self.is_leader or seen is None or seen.renewed_at_s is None or now_s >= seen.last_s + self._stale_s:
            return False
        holder, _ = seen.tenure
        term = Term(holder=holder, acquired_at=self._since_s, renewed_at=seen.renewed_at_s)
        return fencing.may_write(term, holder, now_s, self._fence_of(seen))

    def may_read_state(self) -> bool:
        """Whether nothing can land any more that was started by whoever led before."""
        wait_s = self._stale_s + self._fence.write_timeout + self._fence.clock_skew
        return self.is_leader and self._clock.monotonic_s() >= self._since_s + wait_s

    async def gained(self) -> None:
        await self._leading.wait()

    async def lost(self) -> None:
        await self._following.wait()

    async def run(self) -> None:
        """Look again and again; goes on until it is cancelled."""
        while True:
            await self._look()
            await self._clock.sleep(self._look_every_s)

    async def _look(self) -> None:
        sent_s = self._clock.monotonic_s()
        try:
            lease = await self._client.get(LEASE_RECORDS, self._lease.name, namespace=self._lease.namespace)
            self._seen = sight(self._seen, lease.spec or NO_SPEC, sent_s)
        except NotFound:
            self._seen = sight(self._seen, NO_SPEC, sent_s)
        except KubeError as error:
            log.warning("lease not read", lease=str(self._lease), leader=self.is_leader, error=str(error))
        self._judge(self._clock.monotonic_s())

    def _judge(self, now_s: float) -> None:
        """A new holder beside us ends our term too, and begins the next at the next look: between them another led."""
        seen = self._seen
        if seen is None:
            return
        holder, _ = seen.tenure
        has_run_out = now_s >= seen.first_s + self._fence_of(seen).lease_duration
        if self._tenure is not None and (seen.tenure != self._tenure or has_run_out):
            self._follow("run out" if seen.tenure == self._tenure else "taken by another")
        elif self._tenure is None and holder and self._is_ours(holder) and not has_run_out:
            self._lead(seen, now_s)

    def _fence_of(self, seen: Sighting) -> Fence:
        """With the duration that the lease itself names."""
        named_s = seen.spec.lease_duration_seconds
        return self._fence if named_s is None else msgspec.structs.replace(self._fence, lease_duration=float(named_s))

    def _lead(self, seen: Sighting, now_s: float) -> None:
        self._tenure, self._since_s = seen.tenure, now_s
        self.epoch += 1
        self._following.clear()
        self._leading.set()
        log.info("leading", lease=str(self._lease), holder=seen.tenure[0], epoch=self.epoch)

    def _follow(self, why: str) -> None:
        self._tenure = None
        self._leading.clear()
        self._following.set()
        log.warning("no longer leading", lease=str(self._lease), why=why)


def holder_on(host: str) -> Callable[[str], bool]:
    """Knows the holders on a host, as client-go names them: the host's name, an underscore, and a UUID."""
    return lambda holder: holder.startswith(f"{host}_")
