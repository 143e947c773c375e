"""The last moment before a gang is bound: nobody goes until all who are needed have come.

A member may be held up by something that we know nothing of: a volume, a gate, a scheduler of another name. Whoever
came waits for it a little. Where it does not come all are refused and their places are given back, and the gang is left
alone for a while, longer each time, so that it does not stand in the way of others for ever.
"""

import asyncio

import structlog

from tessera.errors import BindRefused
from tessera.kube.objects import ObjectKey
from tessera.kube.timing import SYSTEM_CLOCK, Backoff, Clock

log: structlog.stdlib.BoundLogger = structlog.get_logger(__name__)
PATIENCE_S = 8.0
"""kube-scheduler waits ten seconds for an answer to a bind."""
LEFT_ALONE = Backoff(first_s=5.0, most_s=60.0)


class Rally:
    """Who has come, of those who have a place."""

    def __init__(self, needed: int) -> None:
        self.needed = needed
        self.came: set[str] = set()
        self.is_over = asyncio.Event()
        self.goes = False

    def end(self, *, goes: bool) -> None:
        self.goes = self.goes or goes
        self.is_over.set()


class Rallies:
    def __init__(self, *, patience_s: float = PATIENCE_S, clock: Clock = SYSTEM_CLOCK) -> None:
        self._patience_s = patience_s
        self._clock = clock
        self._open: dict[ObjectKey, Rally] = {}
        self._failures: dict[ObjectKey, int] = {}
        self._until_s: dict[ObjectKey, float] = {}

    def begin(self, gang: ObjectKey, needed: int) -> None:
        """The gang has its places; so many of its members must come. Whoever has come already is there."""
        rally = self._open.get(gang)
        if rally is None or rally.is_over.is_set():
            self._open[gang] = Rally(needed)
        else:
            rally.needed = needed

    def call_off(self, gang: ObjectKey) -> None:
        """Its places are given back: whoever waits is refused."""
        rally = self._open.pop(gang, None)
        if rally is not None:
            rally.end(goes=False)

    async def join(self, gang: ObjectKey, uid: str) -> None:
        """Returns when all have come. BindRefused, if they do not, or if it was called off."""
        rally = self._open.get(gang)
        if rally is None:
            return
        rally.came.add(uid)
        if len(rally.came) >= rally.needed:
            self._failures.pop(gang, None)
            rally.end(goes=True)
        try:
            async with asyncio.timeout(self._patience_s):
                await rally.is_over.wait()
        except TimeoutError:
            self._leave_alone(gang, rally)
        if not rally.goes:
            came = f"{len(rally.came)} of {rally.needed} members came to be bound"
            raise BindRefused(f"the gang {gang} is not bound: {came}; all of them are tried again")

    def is_left_alone(self, gang: ObjectKey, now_s: float) -> bool:
        return now_s < self._until_s.get(gang, 0.0)

    def forgive(self, gang: ObjectKey) -> None:
        """Its members are others now."""
        self._failures.pop(gang, None)
        self._until_s.pop(gang, None)
        rally = self._open.get(gang)
        if rally is not None and rally.is_over.is_set():
            del self._open[gang]

    def expire(self, now_s: float) -> bool:
        """Whether a gang may be tried again that was left alone until now."""
        late = [gang for gang, until_s in self._until_s.items() if until_s <= now_s]
        for gang in late:
            del self._until_s[gang]
        return bool(late)

    def _leave_alone(self, gang: ObjectKey, rally: Rally) -> None:
        if rally.is_over.is_set():
            return
        failures = self._failures[gang] = self._failures.get(gang, 0) + 1
        self._until_s[gang] = self._clock.monotonic_s() + LEFT_ALONE.wait_s(failures)
        log.info("gang did not assemble", gang=str(gang), came=len(rally.came), needed=rally.needed)
        rally.end(goes=False)
