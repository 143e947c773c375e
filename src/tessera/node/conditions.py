"""What a node says of itself in conditions: where something that others count on is not so, and why.

A condition that was never said is good. So a node on which all is well is not written at all.
"""

from collections.abc import Sequence
from typing import Any

import msgspec

from tessera.model.annotations import keys
from tessera.node.runtimes import ADVICE, NO_CDI


class Verdict(msgspec.Struct, frozen=True, kw_only=True):
    """One condition of the Node as it should be said."""

    type: str
    holds: bool
    reason: str
    message: str = ""

    @property
    def status(self) -> str:
        return "True" if self.holds else "False"


class SaidCondition(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """As it is said now."""

    type: str
    status: str
    message: str | None = None


def judge_late_binding(binds_late: bool) -> Verdict:
    if binds_late:
        return Verdict(type=keys.LATE_BINDING, holds=True, reason="ContainerDeviceInterface")
    return Verdict(type=keys.LATE_BINDING, holds=False, reason=NO_CDI, message=ADVICE)


def judge_limits(trouble: str) -> Verdict:
    """`trouble` is one sentence about why some limit does not hold, empty where all do."""
    reason = "LimitsNotHeld" if trouble else "LimitsHeld"
    return Verdict(type=keys.LIMITS_HELD, holds=not trouble, reason=reason, message=trouble)


def unsaid(verdicts: Sequence[Verdict], said: Sequence[SaidCondition]) -> list[Verdict]:
    """Those that are news."""
    known = {one.type: one for one in said}
    return [verdict for verdict in verdicts if _is_news(verdict, known.get(verdict.type))]


def _is_news(verdict: Verdict, said: SaidCondition | None) -> bool:
    if said is None:
        return not verdict.holds
    return verdict.status != said.status or (not verdict.holds and verdict.message != said.message)


def condition_document(verdict: Verdict, at: str) -> dict[str, Any]:
    return {
        "type": verdict.type,
        "status": verdict.status,
        "reason": verdict.reason,
        "message": verdict.message,
        "lastHeartbeatTime": at,
        "lastTransitionTime": at,
    }
