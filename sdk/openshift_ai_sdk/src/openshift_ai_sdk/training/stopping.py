"""How work that blocks is stopped from outside.

An event loop cannot interrupt a thread that waits for a line of a log. So whatever waits here does so by `pause`, and
whatever reads from a connection says so by `reading`; whoever stops the work wakes the one and cuts the other. Work
that nobody means to stop needs no word of this.
"""

import contextvars
import socket
import threading
from collections.abc import Generator
from contextlib import contextmanager
from typing import Any, Callable


class Stopped(Exception):
    """Somebody has stopped this work."""


class Stop:
    """The work of one thread, and what it reads from now."""

    def __init__(self) -> None:
        self._is_set = threading.Event()
        self._lock = threading.Lock()
        self._open: set[Any] = set()

    def __call__(self) -> None:
        """Stop it, from any thread, as often as one likes."""
        self._is_set.set()
        with self._lock:
            for response in self._open:
                _cut(response)

    def check(self) -> None:
        if self._is_set.is_set():
            raise Stopped

    def wait(self, seconds: float) -> None:
        if self._is_set.wait(max(0.0, seconds)):
            raise Stopped

    def add(self, response: Any) -> None:
        with self._lock:
            self._open.add(response)
        self.check()

    def remove(self, response: Any) -> None:
        with self._lock:
            self._open.discard(response)


_current: "contextvars.ContextVar[Stop]" = contextvars.ContextVar("stop")
_never = Stop()


def pause(seconds: float) -> None:
    """Sleep, unless somebody stops the work: then it ends by `Stopped`."""
    _current.get(_never).wait(seconds)


@contextmanager
def reading(response: Any) -> Generator[None, None, None]:
    """While this lasts, a stop cuts the connection. An error that comes of that is `Stopped`."""
    stop = _current.get(_never)
    try:
        stop.add(response)
        yield
    except Stopped:
        raise
    except Exception as error:
        try:
            stop.check()
        except Stopped as stopped:
            raise stopped from error
        raise
    finally:
        stop.remove(response)
        response.close()


def stoppable(stop: Stop, work: Callable[[], None]) -> None:
    """Do the work in this thread, as something that `stop` stops."""
    context = contextvars.copy_context()
    context.run(_current.set, stop)
    context.run(work)


def _cut(response: Any) -> None:
    """Whoever reads from it is told that it has ended. How to reach the socket differs between versions of urllib3."""
    connection = getattr(response, "connection", None) or getattr(response, "_connection", None)
    sock = getattr(connection, "sock", None)
    try:
        if sock is not None:
            sock.shutdown(socket.SHUT_RDWR)
        elif hasattr(response, "shutdown"):
            response.shutdown()
    except (OSError, ValueError):
        return
