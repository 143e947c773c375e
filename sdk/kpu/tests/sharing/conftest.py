"""A server's door and a client's link, in one process: what they share is still two mappings and two threads."""

import gc
import os
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from kpu.sharing.door import Door, open_door
from kpu.sharing.knocking import Visit, visit
from kpu.sharing.limits import Limits
from kpu.sharing.link import Link


class Pair:
    """Both ends of one link."""

    def __init__(self, door: Door, visit: Visit) -> None:
        self.door, self.visit = door, visit

    @property
    def client(self) -> Link:
        return self.visit.link

    @property
    def server(self) -> Link:
        link = self.door.link(self.visit.session)
        assert link
        return link


@pytest.fixture
def connect() -> Iterator[Callable[..., Pair]]:
    """Makes pairs, and closes what they opened."""
    opened: list[Door | Visit] = []

    def make(limits: Limits | None = None) -> Pair:
        door = open_door(None, limits)
        assert door
        opened.insert(0, door)
        guest = visit(door.invite(), limits)
        assert guest
        opened.insert(0, guest)
        return Pair(door, guest)

    yield make
    for end in opened:
        end.close()


@pytest.fixture
def pair(connect: Callable[..., Pair]) -> Pair:
    return connect()


@pytest.fixture
def nothing_is_left() -> Iterator[None]:
    """Descriptors and threads are what they were before, once the test has closed its own."""
    gc.collect()
    descriptors, threads = set(os.listdir("/proc/self/fd")), threading.active_count()
    yield
    gc.collect()
    _wait_until(lambda: threading.active_count() <= threads)
    assert _names(set(os.listdir("/proc/self/fd")) - descriptors) == []


def _names(descriptors: set[str]) -> list[str]:
    paths = (Path("/proc/self/fd") / number for number in sorted(descriptors))
    return [os.readlink(path) for path in paths if path.is_symlink()]


@pytest.fixture
def eventually() -> Callable[..., None]:
    """Waits for something that another thread or process is about to bring about."""
    return _wait_until


def _wait_until(holds: Callable[[], object], seconds: float = 10.0) -> None:
    deadline = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < deadline, "it did not come about"
        time.sleep(0.005)
