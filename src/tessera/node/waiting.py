"""To look again and again for something that must come soon."""

from collections.abc import Awaitable, Callable
from typing import TypeVar

from tessera.errors import KubeletFailed, StartRefused
from tessera.kube.timing import Clock

T = TypeVar("T")
LOOK_AGAIN_S = 0.05


async def wait_for(attempt: Callable[[], Awaitable[T | None]], otherwise: str, *, deadline_s: float, clock: Clock) -> T:
    """What the attempt finds; StartRefused with this sentence, if it is not found in time.

    A kubelet that does not answer has a moment to come back, too.
    """
    while True:
        try:
            if (found := await attempt()) is not None:
                return found
        except KubeletFailed:
            if clock.monotonic_s() >= deadline_s:
                raise
        if clock.monotonic_s() >= deadline_s:
            raise StartRefused(otherwise)
        await clock.sleep(LOOK_AGAIN_S)
