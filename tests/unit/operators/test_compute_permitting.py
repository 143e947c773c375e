"""What a Compute may not have here."""

import pytest

from tessera.operators.compute_children import ComputeSettings
from tessera.operators.compute_permitting import find_unpermitted
from tests.unit.operators.compute_making import a_compute

SETTINGS = ComputeSettings()


@pytest.mark.parametrize("path", ["/run/kpu", "/run/kpu/", "/run/kpu/team/a"])
def test_a_directory_below_an_allowed_one_may_be_shared(path: str):
    assert find_unpermitted(a_compute(sharedMemory={"hostPath": path}), SETTINGS) is None


@pytest.mark.parametrize("path", ["/", "/etc", "/run/kpu-other", "/run/kpu/../../etc", "/run/kpu/.."])
def test_no_other_directory_of_a_node_may_be_shared(path: str):
    trouble = find_unpermitted(a_compute(sharedMemory={"hostPath": path}), SETTINGS)
    assert trouble is not None
    assert (trouble.reason, trouble.is_final) == ("HostPathNotAllowed", True)
    assert f'"{path}", expected a directory below /run/kpu' in trouble.message


def test_where_all_is_allowed_any_directory_may_be_shared():
    everywhere = ComputeSettings(host_paths=("/",))
    assert find_unpermitted(a_compute(sharedMemory={"hostPath": "/srv/me"}), everywhere) is None


def test_a_claim_is_refused_where_there_are_none():
    compute = a_compute(sharedMemory={"claimName": "c"})
    assert find_unpermitted(compute, SETTINGS) is None
    trouble = find_unpermitted(compute, ComputeSettings(has_claims=False))
    assert trouble is not None
    assert (trouble.reason, trouble.is_final) == ("ClaimsNotSupported", True)
    assert find_unpermitted(a_compute(), SETTINGS) is None
