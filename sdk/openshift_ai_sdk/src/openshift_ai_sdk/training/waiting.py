"""Until a job is done: watched, and looked at again now and then in case nothing tells."""

import time
from typing import Callable, Optional

from . import api, jobs
from .documents import Document
from .statuses import Status
from .watching import patiently, wait_for_change

SHORTEST_S, LONGEST_S = 0.05, 300.0
LEAST_ANSWER_S = 2.0


def wait_until_finished(
    namespace: str,
    name: str,
    find: Callable[[float], Document],
    judge: Callable[[Document], Status],
    timeout_s: float,
    poll_s: float,
    told: Callable[[Status], None],
) -> Optional[Status]:
    """The final status, or None if the time is over. `find` has so many seconds for its answer; `told` is told
    whenever the status changes.
    """
    until_s = time.monotonic() + timeout_s
    last: Optional[Status] = None
    while True:
        document = patiently(lambda: find(_answer_s(until_s)), until_s)
        status = judge(document)
        if status != last:
            last = status
            told(status)
        if status.is_finished:
            return status
        left_s = until_s - time.monotonic()
        if left_s <= 0:
            return None
        selector = {"fieldSelector": f"metadata.name={name}"}
        wait_for_change(jobs.path_of(namespace), selector, document, min(max(poll_s, SHORTEST_S), left_s, LONGEST_S))


def _answer_s(until_s: float) -> float:
    """A server that does not answer is not waited for much longer than was wanted."""
    return min(api.ANSWER_S, max(LEAST_ANSWER_S, until_s - time.monotonic()))


def check_times(timeout: object, poll_interval: object) -> None:
    for name, value in (("timeout", timeout), ("poll_interval", poll_interval)):
        is_number = isinstance(value, (int, float)) and not isinstance(value, bool)
        if not is_number or not value >= 0:  # type: ignore[operator] # a number by now; NaN is none
            raise ValueError(f"{name} is {value!r}, expected a number of seconds, 0 or more")


def timeout_sentence(namespace: str, name: str, detail: str, timeout_s: float, why: Optional[str]) -> str:
    return f"MPIJob {namespace}/{name} was not done after {timeout_s:g} s: {why or detail or 'nothing tells why'}"
