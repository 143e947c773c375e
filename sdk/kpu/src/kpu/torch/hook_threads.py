"""Threads for hooks alone: code that is not ours, and may never return.

A hook that hangs so takes a thread from other hooks, and none from what the server does itself. The threads are
daemons, because a server that is told to stop does not wait for such a hook.
"""

import asyncio
import logging
import threading
from collections.abc import Callable
from concurrent.futures import Future
from queue import SimpleQueue
from typing import Any

from kpu.errors import TransferTimeout
from kpu.torch.logs import facts

log = logging.getLogger(__name__)

THREADS_LIMIT = 32

_Job = tuple[Future[Any], Callable[[], Any]]


class HookThreads:
    """Runs hooks. `seconds` bounds each of them, 0 does not."""

    def __init__(self, seconds: float = 0.0) -> None:
        self._seconds = seconds
        self._jobs: SimpleQueue[_Job | None] = SimpleQueue()
        self._idle = threading.Semaphore(0)
        self._started = 0

    async def run(self, hook: Callable[[], Any]) -> Any:
        """What the hook returns. Whatever it raises comes out as an Exception that a coroutine can carry."""
        job: Future[Any] = Future()
        self._jobs.put((job, hook))
        if not self._idle.acquire(blocking=False) and self._started < THREADS_LIMIT:
            self._started += 1
            threading.Thread(target=self._work, name=f"kpu-hook-{self._started}", daemon=True).start()
        bound = asyncio.timeout(self._seconds or None)
        try:
            async with bound:
                return await asyncio.wrap_future(job)
        except TimeoutError:
            if not bound.expired():
                raise
            log.warning("a hook does not return %s", facts(seconds=self._seconds, threads=self._started))
            raise TransferTimeout(f"a hook of the server did not return within {self._seconds:g} s") from None

    def close(self) -> None:
        """End the threads that are idle, and the others after the hook that they run."""
        for _ in range(self._started):
            self._jobs.put(None)

    def _work(self) -> None:
        while (received := self._jobs.get()) is not None:
            job, hook = received
            if job.set_running_or_notify_cancel():
                _settle(job, hook)
            del received, job, hook  # nothing of a call is held while waiting for the next
            self._idle.release()


def _settle(job: Future[Any], hook: Callable[[], Any]) -> None:
    try:
        job.set_result(hook())
    except StopIteration as error:
        job.set_exception(_told(error))
    except Exception as error:
        job.set_exception(error)
    except BaseException as error:
        job.set_exception(_told(error))


def _told(error: BaseException) -> RuntimeError:
    """For what means something else to whoever waits: that an iteration, a task or the process is to end."""
    told = RuntimeError(f"a hook raised {error!r}")
    told.__cause__ = error
    return told
