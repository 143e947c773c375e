"""How long the operator waits, and since when."""

from datetime import timedelta

import msgspec
import pytest

from tessera.kube.objects import ObjectKey
from tessera.operators.compute_objects import ComputeStatus
from tessera.operators.compute_patience import Pace, Pulls, Restarts
from tessera.operators.objects import Condition
from tests.unit.operators.compute_making import NOW, a_compute, ended, running_for, saying, serving, waiting

KEY = ObjectKey("ml", "demo")


def status(*, ready=True, reason="StatefulSetReady", stalled=False, routed=True):
    told = [("Ready", ready, reason), ("Stalled", stalled, "r"), ("Routed", routed, "r")]
    conditions = (Condition(type=kind, status=str(is_so), reason=why, message="") for kind, is_so, why in told)
    return ComputeStatus(conditions=tuple(conditions))


def pulling(uid="p-1"):
    return named(waiting("ErrImagePull", "not found"), uid)


def named(pod, uid="p-1"):
    return msgspec.structs.replace(pod, metadata=msgspec.structs.replace(pod.metadata, uid=uid))


@pytest.mark.parametrize(
    "calm", [status(), status(ready=False, reason="Suspended")], ids=["it is ready", "it is suspended"]
)
def test_a_compute_without_trouble_is_looked_at_once_in_a_while_and_not_all_at_once(calm):
    waits = [Pace(lambda chance=chance: chance).wait_s(KEY, calm) for chance in (0.0, 0.5, 0.99)]
    assert waits[0] < waits[1] < waits[2]
    assert waits[1] == 60


@pytest.mark.parametrize(
    "trouble",
    [status(ready=False, reason="NameTaken"), status(stalled=True), status(routed=False)],
    ids=["not ready", "stalled", "no route"],
)
def test_trouble_that_stands_is_looked_at_less_and_less(trouble):
    pace = Pace(lambda: 0.5)
    assert [pace.wait_s(KEY, trouble) for _ in range(6)] == [1, 2, 4, 8, 10, 10]
    assert pace.wait_s(ObjectKey("ml", "other"), trouble) == 1


def test_another_trouble_is_looked_at_soon():
    pace = Pace(lambda: 0.5)
    for _ in range(6):
        pace.wait_s(KEY, status(ready=False, reason="NameTaken"))
    assert pace.wait_s(KEY, status(ready=False, reason="Unschedulable")) == 1


def test_an_image_has_failed_since_it_first_did():
    pulls, compute = Pulls(), a_compute()
    later = NOW + timedelta(seconds=9)
    assert pulls.failed_since(compute, [pulling()], NOW) == NOW
    assert pulls.failed_since(compute, [pulling()], later) == NOW
    assert pulls.failed_since(compute, [pulling("another")], later) == later
    assert pulls.failed_since(compute, [], later) is None
    assert pulls.failed_since(compute, [pulling("another")], later + timedelta(1)) == later + timedelta(1)


@pytest.mark.parametrize(("generation", "stays"), [(4, True), (3, False)], ids=["this spec", "an earlier spec"])
def test_an_image_that_was_given_up_before_a_restart_stays_given_up(generation: int, stays: bool):
    given_up = Condition(
        type="Stalled", status="True", reason="ImagePullFailed", message="", observed_generation=generation
    )
    since = Pulls().failed_since(saying(a_compute(), given_up), [pulling()], NOW)
    assert since is not None
    assert (since < NOW) is stays


@pytest.mark.parametrize(
    "calm",
    [
        serving(restarts=5, running=running_for(11)),
        serving(restarts=5, **ended(after_minutes=600)),
        serving(restarts=5, last=ended(after_minutes=600), running=running_for(0.1)),
    ],
    ids=["runs for long", "ended after a long run", "was started anew after a long run"],
)
def test_restarts_before_a_long_run_are_forgiven_for_good(calm):
    restarts = Restarts()
    crashed = serving(restarts=6, last=ended(), running=running_for(0.1))
    assert restarts.count_calm(KEY, [named(crashed)], NOW) == 0
    assert restarts.count_calm(KEY, [named(calm)], NOW) == 5
    assert restarts.count_calm(KEY, [named(crashed)], NOW) == 5
    assert restarts.count_calm(KEY, [named(crashed, "another")], NOW) == 0
