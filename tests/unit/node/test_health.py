"""When a card may be given to anybody: what faults mean, and how long a card must be quiet after one."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tessera.node.health import LOST, XIDS, Damping, Health, Severity
from tests.builders import a_card

WELL, LOST_CARD = a_card("GPU-0"), a_card("GPU-0", healthy=False)
FALLEN_OFF, CONTAINED, PAGE_FAULT, UNHEARD_OF = 79, 94, 31, 4711


def healthy(health: Health, now_s: float) -> bool:
    return not health.why_unhealthy(WELL, now_s)


@pytest.mark.parametrize("number", [number for number, (severity, _) in XIDS.items() if severity is Severity.PROGRAM])
def test_a_programs_own_fault_says_nothing_about_the_card(number: int):
    health = Health()
    health.note("GPU-0", number, 0.0)
    assert healthy(health, 0.0)


@pytest.mark.parametrize("number", [CONTAINED, UNHEARD_OF])
def test_after_a_passing_fault_a_card_is_trusted_again_once_it_was_quiet(number: int):
    health = Health()
    health.note("GPU-0", number, 100.0)
    assert health.why_unhealthy(WELL, 129.9).startswith(f"XID {number}, ")
    assert health.why_unhealthy(WELL, 129.9).endswith("; trusted again after 30 quiet seconds")
    assert healthy(health, 130.0)


def test_each_fault_doubles_the_wait_up_to_the_longest():
    health = Health(Damping(first_s=10.0, most_s=35.0))
    at_s = 0.0
    for quiet_s in (10.0, 20.0, 35.0, 35.0):
        health.note("GPU-0", CONTAINED, at_s)
        assert not healthy(health, at_s + quiet_s - 0.1)
        assert healthy(health, at_s + quiet_s)
        at_s += quiet_s


def test_faults_that_come_together_count_once():
    health = Health(Damping(first_s=30.0))
    for number in range(8):
        health.note("GPU-0", CONTAINED, number / 10)
    assert healthy(health, 31.0)


def test_what_happened_long_ago_does_not_count():
    health = Health(Damping(first_s=10.0, memory_s=1000.0))
    health.note("GPU-0", CONTAINED, 0.0)
    health.note("GPU-0", CONTAINED, 1001.0)
    assert healthy(health, 1011.0), "the first wait again, not the second"


@pytest.mark.parametrize("number", [number for number, (severity, _) in XIDS.items() if severity is Severity.RESET])
def test_a_card_that_must_be_reset_does_not_come_back_by_being_quiet(number: int):
    health = Health()
    health.note("GPU-0", number, 0.0)
    for now_s in (0.0, 3600.0, 1e9):
        assert health.why_unhealthy(WELL, now_s) == f"XID {number}, {XIDS[number][1]}; the card must be reset"


def test_a_card_that_was_gone_and_is_back_counts_as_reset():
    health = Health()
    health.note("GPU-0", FALLEN_OFF, 0.0)
    assert health.why_unhealthy(LOST_CARD, 10.0) == LOST
    assert healthy(health, 40.0)


def test_a_fault_is_held_against_its_own_card_only():
    health = Health()
    health.note("GPU-1", FALLEN_OFF, 0.0)
    assert healthy(health, 0.0)


def test_an_overlooked_fault_changes_nothing():
    health = Health(ignored=frozenset({FALLEN_OFF}))
    health.note("GPU-0", FALLEN_OFF, 0.0)
    assert healthy(health, 0.0)


def test_a_card_is_lost_while_its_driver_says_so_whatever_else_is_known():
    health = Health()
    assert health.why_unhealthy(LOST_CARD, 0.0) == LOST
    health.note("GPU-0", CONTAINED, 1.0)
    assert health.why_unhealthy(LOST_CARD, 1.0) == LOST


def test_a_card_that_comes_back_for_the_first_time_is_trusted_at_once():
    health = Health()
    health.why_unhealthy(LOST_CARD, 0.0)
    assert healthy(health, 5.0)


def test_a_card_that_comes_and_goes_is_trusted_later_each_time_counted_from_its_return():
    health = Health(Damping(first_s=10.0, most_s=35.0))
    at_s = 0.0
    for quiet_s in (0.0, 10.0, 20.0, 35.0, 35.0):
        health.why_unhealthy(LOST_CARD, at_s)
        at_s += 3.0
        health.why_unhealthy(WELL, at_s)
        assert healthy(health, at_s + quiet_s)
        if quiet_s:
            assert "times lately" in health.why_unhealthy(WELL, at_s + quiet_s - 0.1)
        at_s += quiet_s


def test_a_long_absence_is_one_loss_however_often_it_is_seen():
    health = Health(Damping(first_s=10.0))
    for now_s in range(100):
        health.why_unhealthy(LOST_CARD, float(now_s))
    assert healthy(health, 100.0)


def test_a_loss_that_outlasts_the_memory_is_still_a_loss():
    health = Health(Damping(memory_s=50.0))
    assert health.why_unhealthy(LOST_CARD, 0.0) == health.why_unhealthy(LOST_CARD, 100.0) == LOST
    assert healthy(health, 101.0)


@given(st.integers(1, 10_000))
def test_the_wait_never_passes_the_longest_and_never_shrinks(times: int):
    damping = Damping(first_s=1.0, most_s=100.0)
    assert damping.quiet_s(times - 1) <= damping.quiet_s(times) <= 100.0
