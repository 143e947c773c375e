"""Waiting for what the API announces by no event."""

import time
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")
POLL_S = 0.05


def eventually(condition: Callable[[], T], *, timeout_s: float = 30) -> T:
    """The first answer of `condition` that is true; the test fails when none comes in time."""
    deadline = time.monotonic() + timeout_s
    while True:
        if answer := condition():
            return answer
        assert time.monotonic() < deadline, f"not true within {timeout_s:g} s; the last answer was {answer!r}"
        time.sleep(POLL_S)
