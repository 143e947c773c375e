from datetime import timedelta

import pytest

from tessera.cli.figures import age, memory
from tests.unit.views.making import NOW


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0, "0s"),
        (119, "119s"),
        (120, "2m"),
        (7199, "119m"),
        (7200, "2h"),
        (172_799, "47h"),
        (172_800, "2d"),
        (-5, "0s"),
    ],
)
def test_an_age_is_told_in_the_largest_unit_of_which_there_are_two(seconds: int, text: str):
    assert age(NOW - timedelta(seconds=seconds), NOW) == text


def test_an_age_that_nobody_told_is_a_question_mark():
    assert age(None, NOW) == "?"


@pytest.mark.parametrize(
    ("mib", "text"), [(0, "0"), (512, "512Mi"), (1024, "1Gi"), (40_000, "39.1Gi"), (81_920, "80Gi"), (None, "?")]
)
def test_memory_is_in_gib_from_one_on(mib: int | None, text: str):
    assert memory(mib) == text
