"""A Lease that one process renews to say that it is alive, as a node agent does. Nobody competes for it.

Reading it is `lease_records.observe`: whoever watches it judges by the own clock.
"""

import asyncio
import random
from collections.abc import Callable

import structlog

from tessera.errors import KubeError, NotFound
from tessera.kube.client import Client
from tessera.kube.lease_records import LEASE_RECORDS, lease_document, micro_time
from tessera.kube.objects import Document, ObjectKey
from tessera.kube.timing import SYSTEM_CLOCK, Chance, Clock, first_of

log: structlog.stdlib.BoundLogger = structlog.get_logger(__name__)


class Heartbeat:
    """`owner` is an owner reference, so that the lease goes when its node does.

    `marks` gives the metadata that the lease is to carry at each beat; `beaten` is told of those that it carries now.
    """

    def __init__(
        self,
        client: Client,
        lease: ObjectKey,
        holder: str,
        *,
        duration_s: int = 40,
        interval_s: float = 10.0,
        owner: Document | None = None,
        marks: Callable[[], Document] = dict,
        beaten: Callable[[Document], None] = lambda _: None,
        clock: Clock = SYSTEM_CLOCK,
        chance: Chance = random.random,
    ) -> None:
        self._client = client.within(interval_s)
        self._lease = lease
        self._holder = holder
        self._duration_s = duration_s
        self._interval_s = interval_s
        self._owner = owner
        self._marks = marks
        self._beaten_with = beaten
        self._hurry = asyncio.Event()
        self._clock = clock
        self._chance = chance
        self._beat_at_s: float | None = None
        self._beaten = asyncio.Event()

    @property
    def silent_s(self) -> float | None:
        """How long ago the last beat was heard by the API server; None if none was."""
        return None if self._beat_at_s is None else self._clock.monotonic_s() - self._beat_at_s

    async def first(self) -> None:
        """Wait until the API server has heard us once."""
        await self._beaten.wait()

    async def run(self) -> None:
        while True:
            try:
                await self._beat()
            except KubeError as error:
                log.warning("heartbeat not heard", lease=str(self._lease), error=str(error))
            await first_of(self._clock.sleep(self._interval_s * (0.9 + 0.2 * self._chance())), self._hurry.wait())
            self._hurry.clear()

    def beat_soon(self) -> None:
        """There is something new to carry: do not wait for the next beat's time."""
        self._hurry.set()

    async def _beat(self) -> None:
        spec: Document = {
            "holderIdentity": self._holder,
            "leaseDurationSeconds": self._duration_s,
            "renewTime": micro_time(self._clock.wall()),
        }
        name, namespace, marks = self._lease.name, self._lease.namespace, self._marks()
        try:
            change: Document = {"metadata": marks, "spec": spec}
            await self._client.patch(LEASE_RECORDS, name, change, namespace=namespace)
        except NotFound:
            body = lease_document(name, spec, self._owner)
            body["metadata"] |= marks
            await self._client.create(LEASE_RECORDS, body, namespace=namespace)
        self._beaten_with(marks)
        self._beat_at_s = self._clock.monotonic_s()
        self._beaten.set()
