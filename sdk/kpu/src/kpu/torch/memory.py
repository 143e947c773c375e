"""Who holds how many bytes of the server: tensors under way, and tensors that were sent and are kept.

Both draw on one sum. What is kept gives way to what is under way, the oldest first; what is under way waits for its
turn, and is refused after a while. So any number of uploads at once stays within the sum. One event loop uses this:
there are no locks.
"""

import asyncio
import logging
from collections import OrderedDict, deque
from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

from kpu.errors import TooLarge
from kpu.torch.logs import facts

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Bounds:
    """All bytes, those of kept tensors among them, how many may be kept, and how long to wait for room."""

    memory_bytes: int
    store_bytes: int
    store_tensors: int
    wait_seconds: float = 30.0


@dataclass(eq=False)
class _Waiting:
    size: int
    turn: asyncio.Future[None]
    granted: bool = False


@dataclass
class Memory:
    bounds: Bounds
    under_way_bytes: int = 0
    kept_bytes: int = 0
    evicted_tensors: int = 0
    _kept: OrderedDict[str, Any] = field(default_factory=OrderedDict[str, Any])
    _sizes: dict[str, int] = field(default_factory=dict[str, int])
    _queue: deque[_Waiting] = field(default_factory=deque[_Waiting])

    @property
    def kept(self) -> Mapping[str, Any]:
        """The tensors by their ids, oldest first."""
        return MappingProxyType(self._kept)

    def reserve_now(self, size: int) -> bool:
        """Count bytes that are about to be set aside, if there is room and nobody waits for it."""
        if self._queue or not self._fits_after_eviction(size):
            return False
        self.under_way_bytes += size
        return True

    async def reserve(self, size: int) -> None:
        """Count bytes that are about to be set aside, once there is room for them."""
        if size > self.bounds.memory_bytes:
            raise TooLarge(
                f"{size} bytes are more than the {self.bounds.memory_bytes} that this server has for tensors"
            )
        if self.reserve_now(size):
            return
        waiting = _Waiting(size, asyncio.get_running_loop().create_future())
        self._queue.append(waiting)
        try:
            async with asyncio.timeout(self.bounds.wait_seconds):
                await waiting.turn
        except TimeoutError:
            self._give_up(waiting)
            raise TooLarge(
                f"the server is busy: {size} bytes had to wait for {self.bounds.wait_seconds:g} s while other calls "
                f"held {self.under_way_bytes} of {self.bounds.memory_bytes}; try again later"
            ) from None
        except asyncio.CancelledError:
            self._give_up(waiting)
            raise

    def release(self, size: int) -> None:
        """What was reserved is no longer under way."""
        self.under_way_bytes -= size
        self._serve_queue()

    def keep(self, tensor_id: str, tensor: Any, size: int) -> None:
        """Keep a tensor whose bytes were reserved. The oldest leave where it would be too much; the newest stays."""
        self._drop(tensor_id)
        self.under_way_bytes -= size
        self.kept_bytes += size
        self._kept[tensor_id] = tensor
        self._sizes[tensor_id] = size
        while len(self._kept) > self.bounds.store_tensors or self._keeps_too_much():
            self._evict_oldest()
        self._serve_queue()

    def _keeps_too_much(self) -> bool:
        return self.kept_bytes > self.bounds.store_bytes and len(self._kept) > 1

    def _fits_after_eviction(self, size: int) -> bool:
        room = self.bounds.memory_bytes - self.under_way_bytes
        if size > room:
            return False
        while size > room - self.kept_bytes:
            self._evict_oldest()
        return True

    def _serve_queue(self) -> None:
        while self._queue and self._fits_after_eviction(self._queue[0].size):
            waiting = self._queue.popleft()
            waiting.granted = True
            self.under_way_bytes += waiting.size
            if not waiting.turn.done():
                waiting.turn.set_result(None)

    def _give_up(self, waiting: _Waiting) -> None:
        """A turn may have come in the very moment in which its waiter stopped waiting."""
        if waiting.granted:
            self.release(waiting.size)
        else:
            self._queue.remove(waiting)
            self._serve_queue()

    def _evict_oldest(self) -> None:
        tensor_id = next(iter(self._kept))
        size = self._sizes[tensor_id]
        self._drop(tensor_id)
        self.evicted_tensors += 1
        log.info("oldest tensor left to make room %s", facts(tensor=tensor_id, bytes=size, kept=len(self._kept)))

    def _drop(self, tensor_id: str) -> None:
        if self._kept.pop(tensor_id, None) is not None:
            self.kept_bytes -= self._sizes.pop(tensor_id)
