"""Deleting a Compute, and waiting until it is gone: then its cards are free and its name can be used again."""

import logging
from typing import Any

from kpu.client.computes import Computes
from kpu.client.deadlines import Deadline
from kpu.client.verdicts import explains_itself
from kpu.client.waiting import Wait
from kpu.errors import InvalidCompute

DEFAULT_GRACE_S = 30
"""What Kubernetes gives a pod by itself."""
LONGEST_GRACE_S = 2**31 - 1
"""As much as the API has room for."""
MARGIN_S = 30
"""How much longer than its grace a Compute may take to go before we stop looking."""

log = logging.getLogger("kpu.client")


def check_grace(name: str, seconds: Any) -> int:
    if isinstance(seconds, bool) or not isinstance(seconds, int) or not 0 <= seconds <= LONGEST_GRACE_S:
        raise InvalidCompute(
            f"Compute {name}: grace_period_seconds is {seconds!r}, expected a whole number of seconds from 0 to "
            f"{LONGEST_GRACE_S}"
        )
    return seconds


def delete_and_wait(computes: Computes, name: str, grace_period_seconds: int) -> None:
    """A Compute that is not there is deleted already.

    A grace of its own is kept by our operator, which ends the pod with it before it lets the Compute go. Garbage
    collection must not come first then, and another operator would never take our finalizer away.
    """
    found = computes.get(name)
    if found is None:
        return
    is_left_to_operator = grace_period_seconds != DEFAULT_GRACE_S and explains_itself(found)
    if is_left_to_operator:
        computes.ask_for_grace(name, grace_period_seconds)
    if not computes.delete(name, grace_period_seconds, "Background" if is_left_to_operator else "Foreground"):
        return
    patience_s = grace_period_seconds + MARGIN_S
    if not Wait(computes, name, Deadline.after(patience_s)).until_gone(found.metadata.uid):
        log.warning("Compute %s/%s is still being deleted after %s s", computes.namespace, name, patience_s)
