"""What the bench on a card concludes from what it saw. The bench itself needs a card; its judgement does not."""

from dataclasses import replace

import pytest

from benchmarks.h200.single import Capped, judge
from benchmarks.h200.tables import Row, all_hold, is_near, render
from benchmarks.h200.windows import busy_shares, gaps, per_window, variation, went_on_for

MS = 1_000_000


NOTHING_SEEN = Capped("fma", 25, 1.0, None, None, None, None, None, None)


def found(load: str, cap: int, **seen: float) -> Capped:
    return replace(NOTHING_SEEN, load=load, cap=cap, **seen)


def test_completions_are_counted_in_the_window_in_which_they_happened() -> None:
    stamps = [(9.99, 5.0), (10.0, 1.0), (10.05, 1.0), (10.15, 2.0), (10.3, 7.0)]
    assert per_window(stamps, 10.0, 0.3) == [2.0, 2.0, 0.0]


def test_even_windows_do_not_vary_and_nothing_at_all_is_no_figure() -> None:
    assert variation([4.0, 4.0, 4.0]) == 0.0
    assert variation([0.0, 8.0]) == 1.0
    assert variation([0.0, 0.0]) is None


def test_the_longest_gap_is_between_neighbours() -> None:
    seen = gaps([(1.0, 1.0), (1.002, 1.0), (1.05, 1.0)])
    assert seen is not None
    assert seen.longest_ms == pytest.approx(48.0)


def test_time_in_which_two_kernels_overlap_is_busy_once() -> None:
    kernels = [(100 * MS, 150 * MS), (120 * MS, 150 * MS), (190 * MS, 210 * MS)]
    assert busy_shares(kernels, 0, 300 * MS) == pytest.approx([0.6, 0.1])


def test_the_start_of_a_profile_and_its_broken_last_window_are_left_out() -> None:
    assert busy_shares([(0, 250 * MS)], 0, 250 * MS) == pytest.approx([1.0])


def test_a_tenant_that_stops_is_told_from_one_that_had_not_run() -> None:
    submitted = [0.95, 0.99, 1.01, 1.03, 1.9]
    assert went_on_for(submitted, 1.0, 1.5) == pytest.approx(0.03)
    assert went_on_for([0.95, 1.9], 1.0, 1.5) == 0.0
    assert went_on_for([0.5, 1.01], 1.0, 1.5) is None


def test_a_gpu_bound_load_is_judged_by_its_busy_time_and_not_by_its_throughput() -> None:
    assert judge(found("matmul", 25, throughput=0.298, busy=0.251, busy_variation=0.02))[1] is True
    assert judge(found("matmul", 25, throughput=0.251, busy=0.298, busy_variation=0.02))[1] is False
    assert judge(found("matmul", 25, throughput=0.251, busy=0.251, busy_variation=0.08))[1] is False


def test_without_a_profile_throughput_judges_what_power_does_not_bind() -> None:
    assert judge(found("fma", 50, throughput=0.49, throughput_variation=0.01))[1] is True
    assert judge(found("matmul", 50, throughput=0.49))[1] is None


def test_a_cap_above_the_demand_must_not_slow_a_cpu_bound_load() -> None:
    assert judge(found("small", 50, throughput=0.96, nvml=30.0))[1] is True
    assert judge(found("small", 50, throughput=0.90, nvml=50.0))[1] is False
    assert judge(found("small", 10, throughput=0.3, nvml=12.0))[1] is True


def test_what_was_not_seen_is_neither_right_nor_wrong() -> None:
    assert is_near(None, 0.5, 2) is None
    assert all_hold(None, None) is None
    assert all_hold(None, True) is True
    assert all_hold(True, False) is False


def test_a_table_marks_what_does_not_hold() -> None:
    table = render("kill", [Row("next hangs", ours="1 of 200", wanted="0 of 200", holds=False)])
    assert table.endswith("| next hangs | – | – | 1 of 200 | 0 of 200 | **no** |\n")
