"""Blocking work beside an event loop.

Each piece has a thread of its own. A shared pool of a few would let twenty Computes that wait hold up the twenty-first,
and threads that are not daemons would keep a program alive that somebody has already interrupted.
"""

import asyncio
import concurrent.futures
import threading
from collections.abc import Callable
from typing import ParamSpec, TypeVar

P = ParamSpec("P")
T = TypeVar("T")


def start(work: Callable[[], T]) -> concurrent.futures.Future[T]:
    """What `work` will return or raise."""
    outcome = concurrent.futures.Future[T]()

    def run() -> None:
        try:
            result = work()
        except BaseException as error:
            outcome.set_exception(error)
        else:
            outcome.set_result(result)

    threading.Thread(target=run, name="kpu", daemon=True).start()
    return outcome


def wait_for(outcome: concurrent.futures.Future[T], most_s: float | None) -> bool:
    """Whether it came within that time. This blocks."""
    return bool(concurrent.futures.wait([outcome], most_s).done)


async def in_thread(work: Callable[[], T]) -> T:
    """What `work` returns or raises. Who cancels this gets control at once; the work itself is not stopped by that."""
    return await arrival(start(work))


async def arrival(outcome: concurrent.futures.Future[T]) -> T:
    """What comes of work that may be awaited by several, none of whom cancels it for the others."""
    loop = asyncio.get_running_loop()
    arrived = loop.create_future()
    outcome.add_done_callback(lambda _: post(loop, lambda: None if arrived.done() else arrived.set_result(None)))
    await arrived
    return outcome.result()


def is_in_event_loop() -> bool:
    """Whether whoever calls this would hold up an event loop by waiting."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True


def post(loop: asyncio.AbstractEventLoop, call: Callable[[], None]) -> None:
    """Have the loop call it; a loop that has ended no longer wants to know."""
    try:
        loop.call_soon_threadsafe(call)
    except RuntimeError:
        if not loop.is_closed():
            raise


def posted(call: Callable[P, None]) -> Callable[P, None]:
    """The same for other threads: the running loop calls it."""
    loop = asyncio.get_running_loop()

    def post_it(*args: P.args, **options: P.kwargs) -> None:
        post(loop, lambda: call(*args, **options))

    return post_it
