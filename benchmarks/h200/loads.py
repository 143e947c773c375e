"""One process that works, and does as it is told by lines on its input: `python -m benchmarks.h200.loads LOAD`.

All phases of a load run in one process, without a limit first, so that a share is a share of what this very process
could do. It answers each line with a line of JSON. Limits are changed from outside, while it runs.
"""

import json
import sys
import time
from dataclasses import asdict, dataclass
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any, Protocol

from . import driver_loads, torch_loads
from .driver import Driver, Fence
from .driver_loads import Ranks, Submitted
from .observers import profile
from .torch_loads import has_torch, start_torch
from .windows import Stamp, gaps, per_window, variation

LOADS = {**driver_loads.LOADS, **torch_loads.LOADS}
FIRST_WARM_UP_S, WARM_UP_S = 0.7, 0.3


class Load(Protocol):
    depth: int

    def submit(self) -> Submitted: ...


@dataclass(frozen=True)
class Order:
    """What to do next. Times are of the monotonic clock, which all processes of a machine share."""

    seconds: float
    starts_at: float = 0.0
    warm_up_s: float = WARM_UP_S
    is_profiled: bool = False
    is_traced: bool = False
    """Answer with the moment of every submission, too."""


class Runner:
    def __init__(self, driver: Driver, load: Load) -> None:
        self._driver, self._load = driver, load
        self._fences = [Fence(driver) for _ in range(load.depth)]

    def obey(self, order: Order) -> dict[str, Any]:
        time.sleep(max(0.0, order.starts_at - time.monotonic()))
        begins_at = (order.starts_at or time.monotonic()) + order.warm_up_s
        if not order.is_profiled:
            return self._measure(order, begins_at)
        self._work(begins_at, [], [])
        if not has_torch():
            return {"begins_at": begins_at, "busy": None}
        found = profile(partial(self._work_for, order.seconds))
        return {"begins_at": begins_at, "busy": asdict(found) if found else None}

    def warm_up(self) -> None:
        """Once: the first step of a program loads its kernels, which takes seconds with some."""
        self._load.submit()
        self._driver.synchronize()
        self._work_for(FIRST_WARM_UP_S)

    def _measure(self, order: Order, begins_at: float) -> dict[str, Any]:
        """Without a break after the warm-up, which the first window would show."""
        ends_at = begins_at + order.seconds
        done: list[Stamp] = []
        submitted: list[float] = []
        began_at, copied_before = time.monotonic(), self._copied_bytes()
        self._work(ends_at, done, submitted)
        copied_s, copied_after = time.monotonic() - began_at, self._copied_bytes()
        windows = per_window(done, begins_at, order.seconds)
        answer: dict[str, Any] = {
            "begins_at": begins_at,
            "ends_at": ends_at,
            "rate": sum(windows) / order.seconds,
            "variation": variation(windows),
            "empty_windows": windows.count(0),
            "windows": windows,
        }
        found = gaps([stamp for stamp in done if begins_at <= stamp[0] < ends_at])
        if found:
            answer |= asdict(found)
        if copied_after:
            copied = zip(copied_after, copied_before, strict=True)
            answer["copied_gb_s"] = [(after - before) / copied_s / 1e9 for after, before in copied]
        if order.is_traced:
            answer |= {"submitted": submitted}
        return answer

    def _work_for(self, seconds: float) -> None:
        """Counted from now, because a profiler takes seconds to start the first time."""
        self._work(time.monotonic() + seconds, [], [])

    def _work(self, ends_at: float, done: list[Stamp], submitted: list[float]) -> None:
        """Keep a few steps in flight until the time is over, then wait for them."""
        units = [0.0] * self._load.depth
        turn = 0
        while True:
            slot = turn % self._load.depth
            if turn >= self._load.depth:
                self._fences[slot].wait()
                done.append((time.monotonic(), units[slot]))
                if done[-1][0] > ends_at:
                    break
            step = self._load.submit()
            submitted.append(time.monotonic())
            self._fences[slot].record(step.stream)
            units[slot] = step.units
            turn += 1
        self._driver.synchronize()

    def _copied_bytes(self) -> tuple[int, ...]:
        return self._load.copied_bytes() if isinstance(self._load, driver_loads.Copies) else ()


def say(answer: dict[str, Any]) -> None:
    print(json.dumps(answer), flush=True)


def main() -> None:
    """The framework is loaded before the first line, and the card is touched after it."""
    name, *rest = sys.argv[1:]
    needs_torch = name in torch_loads.LOADS or ("--profiled" in rest and has_torch())
    if needs_torch:
        import_module("torch")
    say({"ready": name})
    sys.stdin.readline()
    began = time.monotonic()
    if needs_torch:
        start_torch()
    driver = Driver()
    if name == "ranks":
        ranks = Ranks(driver, Path(rest[0]), int(rest[1]))
        say({"set_up_s": time.monotonic() - began})
        for line in sys.stdin:
            say(ranks.meet(int(json.loads(line)["times"])))
        return
    runner = Runner(driver, LOADS[name](driver))
    runner.warm_up()
    say({"set_up_s": time.monotonic() - began})
    for line in sys.stdin:
        say(runner.obey(Order(**json.loads(line))))


if __name__ == "__main__":
    main()
