"""Who holds how many bytes of the server: tensors under way, and tensors that were sent and are kept.

Both draw on one sum, `total`, as do the regions that are lent to clients and the memory that is kept warm. What is kept
gives way to what is under way, the oldest first, and so does what is idle elsewhere; what is under way waits for its
turn, and is refused after a while. So any number of uploads at once stays within the sum. Only what a hook has made
may go beyond it: that is there already, and whoever holds memory and waits for more may wait for itself. What is kept
on a device holds nothing of the sum, and is bounded as all that is kept. One event loop uses this: there are no locks
but that of the sum.
"""

import asyncio
import logging
from collections import OrderedDict, deque
from collections.abc import Callable, ItemsView, Iterator, Mapping, ValuesView
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from kpu.errors import TooLarge
from kpu.sharing.allowance import Allowance
from kpu.torch.logs import facts

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Bounds:
    """All bytes, those of kept tensors among them, how many may be kept, and how long to wait for room."""

    memory_bytes: int
    store_bytes: int
    store_tensors: int
    wait_seconds: float = 30.0


@dataclass(frozen=True, slots=True)
class _Kept:
    size: int
    is_on_host: bool

    @property
    def on_host(self) -> int:
        return self.size if self.is_on_host else 0


@dataclass(eq=False)
class _Waiting:
    size: int
    turn: asyncio.Future[None]
    granted: bool = False


class Shelf(Mapping[str, Any]):
    """Tensors by their ids, for hooks: they look from threads of their own, while others come and go.

    Whoever goes through them goes through those that there were when he began.
    """

    def __init__(self, tensors: OrderedDict[str, Any]) -> None:
        self._tensors = tensors

    def __getitem__(self, tensor_id: str) -> Any:
        return self._tensors[tensor_id]

    def __len__(self) -> int:
        return len(self._tensors)

    def __iter__(self) -> Iterator[str]:
        return iter(self._now())

    def items(self) -> ItemsView[str, Any]:
        return self._now().items()

    def values(self) -> ValuesView[Any]:
        return self._now().values()

    def _now(self) -> dict[str, Any]:
        return dict(self._tensors)


def _nothing_idle() -> None:
    pass


@dataclass
class Memory:
    """`part_with_idle` is called when there is no room: others then give back what they hold and do not use."""

    bounds: Bounds
    part_with_idle: Callable[[], None] = _nothing_idle
    total: Allowance = field(init=False)
    under_way_bytes: int = 0
    kept_bytes: int = 0
    kept_on_host_bytes: int = 0
    evicted_tensors: int = 0
    _tensors: OrderedDict[str, Any] = field(default_factory=OrderedDict[str, Any])
    _kept: OrderedDict[str, _Kept] = field(default_factory=OrderedDict[str, _Kept])
    _queue: deque[_Waiting] = field(default_factory=deque[_Waiting])

    def __post_init__(self) -> None:
        self.total = Allowance(self.bounds.memory_bytes, when_freed=self._wake_queue)

    @property
    def kept(self) -> Mapping[str, Any]:
        """The tensors by their ids, oldest first."""
        return Shelf(self._tensors)

    def reserve_now(self, size: int) -> bool:
        """Count bytes that are about to be set aside, if there is room and nobody waits for it.

        Nothing at all needs no turn: who asks for it may be the one that the others wait for.
        """
        return not size or (not self._queue and self._take_after_eviction(size))

    async def reserve(self, size: int) -> None:
        """Count bytes that are about to be set aside, once there is room for them."""
        self._refuse_what_never_fits(size)
        if self.reserve_now(size):
            return
        self.part_with_idle()
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
                f"held {self.total.used - self.kept_on_host_bytes} of {self.bounds.memory_bytes}; try again later"
            ) from None
        except asyncio.CancelledError:
            self._give_up(waiting)
            raise

    def count_made(self, size: int) -> None:
        """Count bytes that are there already, also beyond the sum; others then wait until it holds again."""
        self._refuse_what_never_fits(size)
        if not size or self._take_after_eviction(size):
            return
        self.part_with_idle()
        if self._take_after_eviction(size):
            return
        self._evict_from_host()
        self.total.take_anyway(size)
        self.under_way_bytes += size

    def release(self, size: int) -> None:
        """What was reserved is no longer under way."""
        self.under_way_bytes -= size
        self.total.give_back(size)
        self._serve_queue()

    def keep(self, tensor_id: str, tensor: Any, size: int, is_on_host: bool = True) -> None:
        """Keep a tensor whose bytes were reserved. The oldest leave where it would be too much; the newest stays."""
        self._drop(tensor_id)
        kept = _Kept(size, is_on_host)
        self.under_way_bytes -= size
        self.kept_bytes += size
        self.kept_on_host_bytes += kept.on_host
        if not is_on_host:
            self.total.give_back(size)
        self._kept[tensor_id], self._tensors[tensor_id] = kept, tensor
        while len(self._kept) > self.bounds.store_tensors or self._keeps_too_much():
            self._evict(next(iter(self._kept)))
        self._serve_queue()

    def _refuse_what_never_fits(self, size: int) -> None:
        if size > self.bounds.memory_bytes:
            raise TooLarge(
                f"{size} bytes are more than the {self.bounds.memory_bytes} that this server has for tensors"
            )

    def _keeps_too_much(self) -> bool:
        return self.kept_bytes > self.bounds.store_bytes and len(self._kept) > 1

    def _take_after_eviction(self, size: int) -> bool:
        """Count bytes as under way, if there is room for them but for what is kept."""
        if self.total.used - self.kept_on_host_bytes + size > self.total.limit:
            return False
        while not self.total.take(size):
            oldest = self._oldest_on_host()
            if oldest is None:
                return False
            self._evict(oldest)
        self.under_way_bytes += size
        return True

    def _oldest_on_host(self) -> str | None:
        return next((tensor_id for tensor_id, kept in self._kept.items() if kept.on_host), None)

    def _evict_from_host(self) -> None:
        while (oldest := self._oldest_on_host()) is not None:
            self._evict(oldest)

    def _serve_queue(self) -> None:
        while self._queue and self._take_after_eviction(self._queue[0].size):
            waiting = self._queue.popleft()
            waiting.granted = True
            if not waiting.turn.done():
                waiting.turn.set_result(None)

    def _wake_queue(self) -> None:
        """Something was given back, in whatever thread. Meanwhile the queue may become empty in its own."""
        with suppress(IndexError):
            self._queue[0].turn.get_loop().call_soon_threadsafe(self._serve_queue)

    def _give_up(self, waiting: _Waiting) -> None:
        """A turn may have come in the very moment in which its waiter stopped waiting."""
        if waiting.granted:
            self.release(waiting.size)
        else:
            self._queue.remove(waiting)
            self._serve_queue()

    def _evict(self, tensor_id: str) -> None:
        size = self._kept[tensor_id].size
        self._drop(tensor_id)
        self.evicted_tensors += 1
        log.info("oldest tensor left to make room %s", facts(tensor=tensor_id, bytes=size, kept=len(self._kept)))

    def _drop(self, tensor_id: str) -> None:
        kept = self._kept.pop(tensor_id, None)
        if kept is not None:
            del self._tensors[tensor_id]
            self.kept_bytes -= kept.size
            self.kept_on_host_bytes -= kept.on_host
            if kept.is_on_host:
                self.total.give_back(kept.size)
