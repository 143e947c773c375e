"""What people are told of a Compute when its status changes."""

from tessera.operators.compute_objects import ComputeStatus
from tessera.operators.compute_telling import tell_compute
from tessera.operators.objects import Condition


def status(**conditions: tuple[bool, str]) -> ComputeStatus:
    made = (
        Condition(type=kind, status=str(is_so), reason=reason, message=f"because {reason}")
        for kind, (is_so, reason) in conditions.items()
    )
    return ComputeStatus(conditions=tuple(made))


NOTHING = ComputeStatus()
STARTING = status(Ready=(False, "StatefulSetNotReady"), Suspended=(False, "Resumed"), Stalled=(False, "NotStalled"))


def words(before: ComputeStatus, after: ComputeStatus) -> list[tuple[str, str]]:
    return [(one.level, one.reason) for one in tell_compute(before, after)]


def test_a_start_is_no_news_and_its_end_is():
    assert words(NOTHING, STARTING) == []
    assert words(STARTING, status(Ready=(True, "StatefulSetReady"))) == [("Normal", "Ready")]


def test_trouble_is_told_once_for_as_long_as_it_stands():
    crashing = status(Ready=(False, "CrashLooping"), Stalled=(False, "NotStalled"))
    given_up = status(Ready=(False, "CrashLooping"), Stalled=(True, "CrashLooping"))
    assert words(STARTING, crashing) == [("Warning", "CrashLooping")]
    assert words(crashing, crashing) == []
    assert words(crashing, given_up) == [("Warning", "Stalled")]


def test_suspending_and_resuming_are_told_in_their_order():
    asleep = status(Ready=(False, "Suspended"), Suspended=(True, "Suspended"))
    assert words(STARTING, asleep) == [("Normal", "Suspended")]
    assert words(asleep, STARTING) == [("Normal", "Resumed")]


def test_a_route_is_told_of():
    assert words(NOTHING, status(Routed=(False, "NoGatewayAPI"))) == [("Warning", "NoGatewayAPI")]
