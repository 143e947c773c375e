"""How long a pod has to end, as its Compute says."""

import pytest

from tessera.operators.compute_ending import read_grace_s
from tests.unit.operators.compute_making import a_compute

GRACE = "compute.kpu.dev/deletion-grace-seconds"


@pytest.mark.parametrize(("told", "grace_s"), [("0", 0), ("45", 45), (str(2**31 - 1), 2**31 - 1)])
def test_a_grace_is_a_number_of_seconds(told: str, grace_s: int):
    assert read_grace_s(a_compute(annotations={GRACE: told})) == grace_s


@pytest.mark.parametrize("told", ["", "-1", "1.5", "soon", "²", str(2**31), "9" * 5000])
def test_a_grace_that_is_none_is_as_usual(told: str):
    assert read_grace_s(a_compute(annotations={GRACE: told})) is None
    assert read_grace_s(a_compute()) is None
