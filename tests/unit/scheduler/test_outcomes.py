"""What is left on a pod that is not placed: why, and since when, which another reason does not change."""

import asyncio
from datetime import UTC, datetime
from typing import Any, cast

import msgspec
import pytest

from tessera.kube.pods import Pod
from tessera.scheduler.outcomes import PodOutcomes
from tests.unit.scheduler.cluster import a_pod

NOW = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
WAITS = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": "the card is taken"}
RUNS = {"type": "PodScheduled", "status": "True"}


class Notes:
    """A client, a recorder and a clock that note what they are asked."""

    def __init__(self) -> None:
        self.conditions: list[dict[str, str]] = []

    async def patch(self, _kind: object, _name: str, change: dict[str, Any], **_options: object) -> None:
        self.conditions += change["status"]["conditions"]

    def warning(self, *_facts: object) -> None: ...

    def wall(self) -> datetime:
        return NOW


@pytest.mark.parametrize(
    ("before", "since"), [([], "2026-01-02T03:04:05Z"), ([RUNS], "2026-01-02T03:04:05Z"), ([WAITS], None)]
)
def test_since_when_a_pod_waits_is_said_once(before, since):
    pod = msgspec.convert({**a_pod(), "status": {"conditions": before}}, Pod)
    notes = Notes()
    outcomes = PodOutcomes(cast("Any", notes), cast("Any", notes), clock=cast("Any", notes))
    asyncio.run(outcomes.not_placed(pod, "no card is free"))
    (condition,) = notes.conditions
    assert condition.get("lastTransitionTime") == since
    assert condition["message"] == "no card is free"
