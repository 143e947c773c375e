"""A clock that moves only when a test says so."""

import asyncio
from datetime import UTC, datetime, timedelta

START = datetime(2026, 1, 1, tzinfo=UTC)


class FakeClock:
    def __init__(self) -> None:
        self.now_s = 1000.0
        self.slept_s: list[float] = []
        self._sleepers: list[tuple[float, asyncio.Future[None]]] = []
        self._asleep = asyncio.Event()

    def monotonic_s(self) -> float:
        return self.now_s

    def wall(self) -> datetime:
        return START + timedelta(seconds=self.now_s)

    async def sleep(self, seconds: float) -> None:
        self.slept_s.append(seconds)
        if seconds > 0:
            future = asyncio.get_running_loop().create_future()
            self._sleepers.append((self.now_s + seconds, future))
            self._asleep.set()
            await future

    def advance(self, seconds: float) -> None:
        """Let time pass, and wake whoever has slept long enough."""
        self.now_s += seconds
        awake = [future for until_s, future in self._sleepers if until_s <= self.now_s]
        self._sleepers = [(until_s, future) for until_s, future in self._sleepers if until_s > self.now_s]
        for future in awake:
            if not future.done():
                future.set_result(None)

    async def until_asleep(self) -> None:
        """Wait until somebody sleeps, having done what there was to do."""
        while not self._sleepers:
            self._asleep.clear()
            await self._asleep.wait()


class HastyClock(FakeClock):
    """Time passes as soon as somebody wants to sleep."""

    async def sleep(self, seconds: float) -> None:
        self.slept_s.append(seconds)
        self.now_s += seconds
        await asyncio.sleep(0)
