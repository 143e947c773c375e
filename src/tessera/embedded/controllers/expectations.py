"""What we have asked for and not seen yet.

A pod that was just created is not in the cache for a moment. Whoever counts pods then would create it again; so the
count waits until everything that was asked for has shown. Names are chosen before a pod is asked for, and what is
expected is noted before it is asked for, so that the watch can be first. Something that never shows, because it came
and went while nobody watched, is waited for a while and no longer.
"""

from collections.abc import Callable
from enum import Enum
from typing import NamedTuple

from tessera.embedded.controllers.pods import Pod
from tessera.kube.caching import Change
from tessera.kube.objects import ObjectKey

PATIENCE_S = 30.0


class Outcome(Enum):
    MADE = "made"
    GOING = "going"


class _Expected(NamedTuple):
    pod: ObjectKey
    outcome: Outcome


class Expectations:
    """By who asked. `monotonic_s` is a clock."""

    def __init__(self, monotonic_s: Callable[[], float]) -> None:
        self._monotonic_s = monotonic_s
        self._until_s: dict[ObjectKey, dict[_Expected, float]] = {}
        self._asker: dict[_Expected, ObjectKey] = {}

    def expect(self, asker: ObjectKey, pod: ObjectKey, outcome: Outcome) -> None:
        expected = _Expected(pod, outcome)
        self._until_s.setdefault(asker, {})[expected] = self._monotonic_s() + PATIENCE_S
        self._asker[expected] = asker

    def cancel(self, pod: ObjectKey, outcome: Outcome) -> None:
        """It will not be so: the request was refused, or has shown."""
        expected = _Expected(pod, outcome)
        asker = self._asker.pop(expected, None)
        if asker is None:
            return
        waiting = self._until_s[asker]
        del waiting[expected]
        if not waiting:
            del self._until_s[asker]

    def see(self, change: Change[Pod]) -> None:
        """For whoever follows pods."""
        self.cancel(change.key, Outcome.MADE)
        if change.after is None or change.after.metadata.is_going:
            self.cancel(change.key, Outcome.GOING)

    def wait_s(self, asker: ObjectKey) -> float:
        """How long to wait at most until everything has shown; 0, if it has."""
        now_s = self._monotonic_s()
        waiting = self._until_s.get(asker, {})
        for expected in [expected for expected, until_s in waiting.items() if until_s <= now_s]:
            self.cancel(*expected)
        return max((until_s - now_s for until_s in waiting.values()), default=0.0)
