"""Clocks, waiting and backoff, so that whoever waits can be tested without waiting.

Durations are judged by the monotonic clock. Wall-clock times are written for people and never compared.
"""

import asyncio
import random
import time
from collections.abc import Callable, Coroutine
from datetime import UTC, datetime
from typing import Any, Protocol

import msgspec

Chance = Callable[[], float]
"""A number from 0 up to 1; `random.random`, unless a test chooses."""


class Clock(Protocol):
    def monotonic_s(self) -> float: ...

    def wall(self) -> datetime: ...

    async def sleep(self, seconds: float) -> None: ...


class SystemClock:
    def monotonic_s(self) -> float:
        return time.monotonic()

    def wall(self) -> datetime:
        return datetime.now(UTC)

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(seconds)


SYSTEM_CLOCK = SystemClock()


class Backoff(msgspec.Struct, frozen=True, kw_only=True):
    """How long to wait after the n-th failure in a row: doubling, bounded, and never the same for all at once."""

    first_s: float = 0.5
    most_s: float = 30.0
    jitter: float = 0.5

    def wait_s(self, failures: int, chance: Chance = random.random) -> float:
        """`failures` counts from 1. The wait is spread over `1 - jitter` to `1 + jitter` of its length."""
        doublings = min(max(failures, 1) - 1, 60)
        whole = min(self.first_s * 2.0**doublings, self.most_s)
        return whole * (1 - self.jitter + 2 * self.jitter * chance())


async def first_of(*waits: Coroutine[Any, Any, object]) -> None:
    """Return when one of them is over; the others are not waited for any more."""
    waiting = [asyncio.ensure_future(wait) for wait in waits]
    try:
        await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for wait in waiting:
            wait.cancel()


class TokenBucket:
    """Lets `burst` through at once and `per_s` in the long run; past that it says how long to wait."""

    def __init__(self, *, per_s: float, burst: float) -> None:
        self._per_s = per_s
        self._burst = burst
        self._tokens = burst
        self._counted_at_s: float | None = None

    def try_take(self, now_s: float) -> bool:
        self._refill(now_s)
        if self._tokens < 1:
            return False
        self._tokens -= 1
        return True

    def reserve(self, now_s: float) -> float:
        """Take a token that may still have to come, and say in how many seconds it will have."""
        self._refill(now_s)
        self._tokens -= 1
        return max(0.0, -self._tokens / self._per_s)

    def _refill(self, now_s: float) -> None:
        if self._counted_at_s is not None:
            earned = (now_s - self._counted_at_s) * self._per_s
            self._tokens = min(self._burst, self._tokens + earned)
        self._counted_at_s = now_s
