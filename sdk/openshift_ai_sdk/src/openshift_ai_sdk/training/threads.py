"""Blocking work beside an event loop: each piece in a thread of its own, which ends when who awaits it is cancelled.

A shared pool of a few threads would let twenty jobs that are waited for hold up the twenty-first; and threads that are
not daemons would keep a program alive that somebody has already interrupted.
"""

import asyncio
import threading
from collections.abc import AsyncIterator, Generator, Iterator
from typing import Any, Callable, Optional, TypeVar, Union

from .stopping import Stop, Stopped, stoppable

T = TypeVar("T")
AHEAD = 1000
"""How many lines may wait for a reader that is slower than the log."""


class _End:
    """After the last line; with an error if it is one."""

    def __init__(self, error: Optional[BaseException] = None) -> None:
        self.error = error


async def in_thread(work: Callable[[], T]) -> T:
    """What the work returns or raises. Cancelling this stops the work."""
    loop = asyncio.get_running_loop()
    arrived: asyncio.Future[T] = loop.create_future()
    stop = Stop()

    def run() -> None:
        try:
            result = work()
        except Stopped:
            return
        except BaseException as raised:
            error = _awaitable(raised)
            _post(loop, lambda: arrived.done() or arrived.set_exception(error))
        else:
            _post(loop, lambda: arrived.done() or arrived.set_result(result))

    _start(stop, run)
    try:
        return await arrived
    finally:
        stop()


class LineStream:
    """Lines of an iterator that blocks, for `async for`. Its thread begins with the first line that is asked for."""

    def __init__(self, lines: Callable[[], Iterator[str]]) -> None:
        self._lines = lines
        self._stop = Stop()
        self._room = threading.Semaphore(AHEAD)
        self._queue: Optional[asyncio.Queue[Union[str, _End]]] = None
        self._is_over = False

    def __aiter__(self) -> AsyncIterator[str]:
        return self

    def __await__(self) -> "Generator[Any, None, LineStream]":
        """So that it may be awaited like everything else that a job does."""
        yield from asyncio.sleep(0).__await__()
        return self

    async def __anext__(self) -> str:
        if self._is_over:
            raise StopAsyncIteration
        if self._queue is None:
            self._queue = asyncio.Queue()
            _start(self._stop, _pump(self._lines, self._stop, self._room, self._queue))
        try:
            item = await self._queue.get()
        except asyncio.CancelledError:
            await self.aclose()
            raise
        self._room.release()
        if isinstance(item, str):
            return item
        self._is_over = True
        if item.error is not None:
            raise item.error
        raise StopAsyncIteration

    async def aclose(self) -> None:
        """Stop reading. Whoever leaves the loop early and does not call this stops it by forgetting the stream."""
        self._is_over = True
        self._end()

    def __del__(self) -> None:
        self._end()

    def _end(self) -> None:
        """A thread that waits for room is let in, and finds that it is stopped."""
        self._stop()
        self._room.release()


def _pump(
    lines: Callable[[], Iterator[str]],
    stop: Stop,
    room: threading.Semaphore,
    queue: "asyncio.Queue[Union[str, _End]]",
) -> Callable[[], None]:
    """What the thread does. It must not know the stream, or the stream would never be forgotten."""
    loop = asyncio.get_running_loop()

    def run() -> None:
        end = _End()
        try:
            for line in lines():
                room.acquire()
                stop.check()
                _post(loop, lambda line=line: queue.put_nowait(line))
        except Stopped:
            return
        except BaseException as error:
            end = _End(error)
        _post(loop, lambda: queue.put_nowait(end))

    return run


def _awaitable(error: BaseException) -> BaseException:
    """To whoever awaits, StopIteration is a result; so a callback that raises it would never be heard of."""
    if not isinstance(error, StopIteration):
        return error
    told = RuntimeError(f"StopIteration was raised: {error}")
    told.__cause__ = error
    return told


def _start(stop: Stop, run: Callable[[], None]) -> None:
    threading.Thread(target=stoppable, args=(stop, run), name="openshift-ai-sdk", daemon=True).start()


def _post(loop: asyncio.AbstractEventLoop, call: Callable[[], object]) -> None:
    """Have the loop call it; a loop that has ended no longer wants to know."""
    try:
        loop.call_soon_threadsafe(call)
    except RuntimeError:
        if not loop.is_closed():
            raise
