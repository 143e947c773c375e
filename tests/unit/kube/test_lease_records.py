"""How a replica judges a lease: by its own clock, from when it saw the record change."""

import msgspec
import pytest

from tessera.engine.fencing import Fence
from tessera.kube.lease_records import Lease, LeaseSpec, Observation, acquisition, may_acquire, observe
from tessera.kube.objects import ObjectMeta
from tests.unit.kube.clocks import START

FENCE = Fence(lease_duration=15.0, write_timeout=5.0, clock_skew=1.0)
SPEC = LeaseSpec(holder_identity="one", renew_time="10:00", lease_duration_seconds=15, lease_transitions=4)


def a_lease(spec: LeaseSpec | None, version: str = "1") -> Lease:
    return Lease(metadata=ObjectMeta(resource_version=version), spec=spec)


def seen_at(seconds: float, spec: LeaseSpec = SPEC) -> Observation:
    return observe(None, a_lease(spec), seconds)


def test_a_record_that_stays_the_same_grows_old() -> None:
    assert observe(seen_at(100), a_lease(SPEC), 110).seen_at_s == 100


def test_a_renewed_record_is_young_again() -> None:
    renewed = msgspec.structs.replace(SPEC, renew_time="10:01")

    assert observe(seen_at(100), a_lease(renewed, "2"), 110).seen_at_s == 110


def test_a_label_is_no_renewal_but_a_new_version_to_write_on() -> None:
    seen = observe(seen_at(100), a_lease(SPEC, "2"), 110)

    assert (seen.seen_at_s, seen.resource_version) == (100, "2")


@pytest.mark.parametrize(("now_s", "allowed"), [(100, False), (115.9, False), (116, True)])
def test_a_holder_is_gone_when_it_was_silent_for_the_duration(now_s: float, allowed: bool) -> None:
    assert may_acquire(seen_at(100), now_s, FENCE) is allowed


def test_a_longer_duration_in_the_record_is_respected() -> None:
    longer = seen_at(100, msgspec.structs.replace(SPEC, lease_duration_seconds=60))

    assert not may_acquire(longer, 160.9, FENCE)
    assert may_acquire(longer, 161, FENCE)


@pytest.mark.parametrize("holder", [None, ""])
def test_a_released_lease_is_free_at_once(holder: str | None) -> None:
    assert may_acquire(seen_at(100, msgspec.structs.replace(SPEC, holder_identity=holder)), 100, FENCE)


def test_a_lease_that_nobody_has_made_is_free() -> None:
    assert may_acquire(None, 0, FENCE)


def test_each_acquisition_is_a_new_epoch() -> None:
    assert acquisition("two", seen_at(100), FENCE, START)["leaseTransitions"] == 5
    assert acquisition("two", None, FENCE, START)["leaseTransitions"] == 0
