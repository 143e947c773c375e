"""Leading by somebody else's lease: exactly while the holder beside us does, and never longer."""

from typing import Any

import pytest

from tessera.engine.fencing import Fence
from tessera.errors import NotFound, Unreachable
from tessera.kube.following import STALE_S, Following, holder_on, sight
from tessera.kube.lease_records import Lease, LeaseSpec
from tessera.kube.objects import ObjectKey, ObjectMeta
from tests.unit.kube.clocks import FakeClock

pytestmark = pytest.mark.asyncio
FENCE = Fence(lease_duration=60.0, write_timeout=5.0, clock_skew=1.0)
DURATION_S = 15
WAIT_S = STALE_S + FENCE.write_timeout + FENCE.clock_skew
OURS, THEIRS = "here_1", "there_1"


class Bed:
    """A lease that a test writes, and somebody who looks at it when the test says so."""

    def __init__(self) -> None:
        self.clock = FakeClock()
        self.spec: LeaseSpec | None = None
        self.is_away = False
        self.following = Following(
            self,  # type: ignore[arg-type] # it reads leases and does nothing else
            ObjectKey("kube-system", "hami-scheduler"),
            holder_on("here"),
            fence=FENCE,
            clock=self.clock,
        )

    def within(self, _seconds: float) -> "Bed":
        return self

    async def get(self, _kind: object, name: str, **_where: str) -> Lease:
        if self.is_away:
            raise Unreachable("nobody answers")
        if self.spec is None:
            raise NotFound("gone", verb="get", target=name, status=404, reason="NotFound")
        return Lease(metadata=ObjectMeta(name=name), spec=self.spec)

    def write(self, holder: str, *, transitions: int = 0, at: int = 0, **more: Any) -> None:
        self.spec = LeaseSpec(
            holder_identity=holder,
            lease_duration_seconds=DURATION_S,
            renew_time=str(at),
            lease_transitions=transitions,
            **more,
        )

    async def look(self, *, after_s: float = 1.0) -> Following:
        self.clock.advance(after_s)
        await self.following._look()
        return self.following


@pytest.fixture
def bed() -> Bed:
    return Bed()


async def leading(bed: Bed) -> Following:
    """A term of ours that was renewed once and whose wait is over."""
    bed.write(OURS)
    await bed.look()
    for at in range(1, round(WAIT_S) + 1):
        bed.write(OURS, at=at)
        await bed.look()
    assert bed.following.may_write()
    return bed.following


async def test_the_one_beside_the_holder_leads_and_nobody_else(bed: Bed):
    assert not (await bed.look()).is_leader, "there is no lease"
    bed.write(THEIRS)
    assert not (await bed.look()).is_leader
    bed.write("hereafter_1", transitions=1)
    assert not (await bed.look()).is_leader, "another host whose name begins as ours"
    bed.write(OURS, transitions=2)
    assert (await bed.look()).is_leader
    bed.write(THEIRS, transitions=3)
    assert not (await bed.look()).is_leader


async def test_a_leader_does_not_write_before_it_has_seen_a_renewal(bed: Bed):
    """How old the record was when it was first read is not known."""
    bed.write(OURS)
    following = await bed.look()
    assert not following.may_write()
    assert not (await bed.look()).may_write(), "the record is the same"
    bed.write(OURS, at=1)
    assert (await bed.look()).may_write()


async def test_a_renewal_counts_from_the_last_look_that_did_not_show_it(bed: Bed):
    bed.write(OURS)
    await bed.look()
    bed.write(OURS, at=1)
    await bed.look(after_s=2.0)
    granted_s = DURATION_S - FENCE.write_timeout - FENCE.clock_skew - 2.0
    for _ in range(round(granted_s) - 1):
        assert (await bed.look()).may_write()
    assert not (await bed.look()).may_write(), "a write could land when the lease has run out"


async def test_who_cannot_look_does_not_write(bed: Bed):
    following = await leading(bed)
    bed.is_away = True
    await bed.look(after_s=STALE_S - 0.5)
    assert following.may_write()
    await bed.look(after_s=0.5)
    assert not following.may_write(), "the lease may have been given to another meanwhile"
    assert following.is_leader, "which does not have to be so"
    bed.is_away = False
    bed.write(OURS, at=100)
    assert (await bed.look()).may_write()


async def test_a_lease_that_is_not_renewed_runs_out_by_our_own_clock(bed: Bed):
    following = await leading(bed)
    await bed.look(after_s=DURATION_S - 1)
    assert following.is_leader
    assert not (await bed.look(after_s=2.0)).is_leader
    assert not (await bed.look()).is_leader, "it still names the one beside us"


async def test_a_new_leader_reads_no_state_before_the_last_write_of_its_predecessor_has_landed(bed: Bed):
    bed.write(THEIRS)
    await bed.look()
    bed.write(OURS, transitions=1)
    following = await bed.look()
    bed.clock.advance(WAIT_S - 0.1)
    assert not following.may_read_state()
    bed.clock.advance(0.1)
    assert following.may_read_state()


async def test_a_holder_that_comes_back_under_our_name_is_another_term(bed: Bed):
    """Between the two another may have led, and kube-scheduler itself has forgotten what it knew."""
    following = await leading(bed)
    before = following.epoch
    bed.write("here_2", transitions=2)
    await bed.look()
    assert not following.is_leader
    await following.lost()
    await bed.look()
    await following.gained()
    assert following.epoch == before + 1
    assert not following.may_read_state()


async def test_a_lease_that_was_given_back_or_deleted_is_nobodys(bed: Bed):
    following = await leading(bed)
    bed.write("", transitions=0, at=50)
    assert not (await bed.look()).is_leader
    bed.write(OURS, transitions=1, at=51)
    assert (await bed.look()).is_leader
    bed.spec = None
    assert not (await bed.look()).is_leader
    assert following.epoch == 2


async def test_reading_the_same_again_renews_nothing():
    spec = LeaseSpec(holder_identity=OURS, renew_time="1")
    first = sight(None, spec, 10.0)
    again = sight(first, spec, 12.0)
    assert (again.first_s, again.last_s, again.renewed_at_s) == (10.0, 12.0, None)
    renewed = sight(again, LeaseSpec(holder_identity=OURS, renew_time="2"), 15.0)
    assert (renewed.first_s, renewed.renewed_at_s) == (15.0, 12.0)
