"""An API server takes note of a new webhook or policy a moment after it was made."""

import time
from collections.abc import Callable

PATIENCE_S = 30.0


def eventually(condition: Callable[[], bool]) -> None:
    until_s = time.monotonic() + PATIENCE_S
    while not condition():
        assert time.monotonic() < until_s, "it did not come true in time"
        time.sleep(0.1)
