"""When a scheduler may write and its successor may: the arithmetic at its edges."""

import pytest

from tessera.engine.fencing import Fence, Term, may_read_state, may_take_over, may_write

FENCE = Fence(lease_duration=15.0, write_timeout=5.0, clock_skew=1.0)
TERM = Term(holder="one", acquired_at=50.0, renewed_at=100.0)


@pytest.mark.parametrize(("now", "allowed"), [(100.0, True), (108.99, True), (109.0, False), (200.0, False)])
def test_a_leader_starts_no_write_that_could_land_after_its_lease(now: float, allowed: bool) -> None:
    assert may_write(TERM, "one", now, FENCE) is allowed


def test_nobody_writes_in_the_term_of_another() -> None:
    assert not may_write(TERM, "two", 100.0, FENCE)


@pytest.mark.parametrize(("now", "allowed"), [(100.0, False), (115.0, False), (115.99, False), (116.0, True)])
def test_a_lease_is_taken_over_only_once_it_has_run_out_on_every_clock(now: float, allowed: bool) -> None:
    assert may_take_over(TERM, now, FENCE) is allowed


def test_the_first_leader_ever_reads_at_once() -> None:
    assert may_read_state(None, 100.0, FENCE)


@pytest.mark.parametrize(("now", "allowed"), [(100.0, False), (115.99, False), (116.0, True)])
def test_a_successor_reads_only_once_nothing_of_its_predecessor_can_land(now: float, allowed: bool) -> None:
    assert may_read_state(TERM, now, FENCE) is allowed


def test_the_last_write_has_landed_before_the_earliest_takeover_on_the_most_wrong_clocks() -> None:
    last_start = TERM.renewed_at + FENCE.lease_duration - FENCE.write_timeout - FENCE.clock_skew
    lands_for_the_writer = last_start + FENCE.write_timeout
    lands_for_a_clock_ahead = lands_for_the_writer + FENCE.clock_skew

    assert not may_take_over(TERM, lands_for_a_clock_ahead, FENCE)
