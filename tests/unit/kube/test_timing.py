"""Backoff and token buckets."""

from hypothesis import given
from hypothesis import strategies as st

from tessera.kube.timing import Backoff, TokenBucket

FEW = Backoff(first_s=1.0, most_s=8.0, jitter=0.5)


def test_waits_double_up_to_the_most() -> None:
    assert [FEW.wait_s(failures, lambda: 0.5) for failures in range(1, 7)] == [1, 2, 4, 8, 8, 8]


@given(st.integers(0, 10_000), st.floats(0, 1, exclude_max=True))
def test_a_wait_is_never_too_short_nor_too_long(failures: int, chance: float) -> None:
    assert 0.5 <= FEW.wait_s(failures, lambda: chance) <= 12.0


def test_a_bucket_lets_a_burst_through_and_then_its_rate() -> None:
    bucket = TokenBucket(per_s=2.0, burst=3)

    assert [bucket.try_take(0.0) for _ in range(4)] == [True, True, True, False]
    assert [bucket.try_take(0.5) for _ in range(2)] == [True, False]


def test_a_reservation_says_when_its_turn_is() -> None:
    bucket = TokenBucket(per_s=2.0, burst=1)

    assert [bucket.reserve(0.0) for _ in range(3)] == [0.0, 0.5, 1.0]


@given(st.lists(st.floats(0, 5), max_size=60))
def test_no_more_leaves_a_bucket_than_ran_into_it(pauses: list[float]) -> None:
    bucket, now_s, taken = TokenBucket(per_s=1.0, burst=4), 0.0, 0

    for pause in pauses:
        now_s += pause
        taken += bucket.try_take(now_s)

    assert taken <= 4 + now_s + 1e-6
