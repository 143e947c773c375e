"""Why a pod was not made, from the words of others."""

import pytest

from tessera.operators.compute_refusals import find_refusal, read_refusal, wants_confinement
from tests.unit.operators.compute_making import a_set, told

QUOTA = 'pods "demo-0" is forbidden: exceeded quota: q, requested: {}, used: {}, limited: {}'


@pytest.mark.parametrize(
    ("requested", "used", "limited", "is_final"),
    [
        ("requests.cpu=2", "requests.cpu=0", "requests.cpu=1", True),
        ("requests.cpu=1", "requests.cpu=500m", "requests.cpu=1", False),
        (
            "limits.cpu=1,requests.memory=3Gi",
            "limits.cpu=0,requests.memory=0",
            "limits.cpu=2,requests.memory=2Gi",
            True,
        ),
        ("pods=1", "pods=10", "pods=10", False),
    ],
)
def test_a_quota_that_is_too_small_by_itself_is_final(requested: str, used: str, limited: str, is_final: bool):
    trouble = read_refusal(QUOTA.format(requested, used, limited))
    assert (trouble.reason, trouble.is_final) == ("QuotaExceeded", is_final)


@pytest.mark.parametrize(
    ("words", "reason", "is_final"),
    [
        ("failed quota: q: must specify limits.memory for: server", "QuotaExceeded", True),
        ("maximum memory usage per Container is 1Gi, but limit is 2Gi", "LimitRangeExceeded", True),
        ('admission webhook "guard.example" denied the request: no', "AdmissionDenied", True),
        ("ValidatingAdmissionPolicy 'a' with binding 'b' denied request: no", "AdmissionDenied", True),
        ('pods "demo-0" is forbidden: violates PodSecurity "restricted:latest": hostPath', "AdmissionDenied", True),
        ('admission webhook "vgpu.hami.io" denied the request: the quota allows 2', "AdmissionDenied", False),
        ('Pod "demo-0" is invalid: spec.containers[0].name: Required value', "PodInvalid", True),
        ('Internal error occurred: failed calling webhook "guard.example": timeout', "PodNotMade", False),
    ],
)
def test_a_refusal_has_a_word(words: str, reason: str, is_final: bool):
    assert read_refusal(words) == (reason, words, is_final)


def test_only_the_last_try_counts():
    refused, made = told("FailedCreate", "no", after_s=1), told("SuccessfulCreate", after_s=2)
    assert find_refusal(a_set(), [refused, made]) is None
    again = told("FailedCreate", "no", after_s=3)
    assert find_refusal(a_set(), [again, refused, made]) == ("PodNotMade", "no", False)
    same_second = told("SuccessfulCreate", after_s=3, version=9)
    assert find_refusal(a_set(), [again, same_second]) is None


def test_what_was_said_before_the_last_change_is_not_about_what_is_wanted_now():
    assert find_refusal(a_set(), [told("FailedCreate", "no", after_s=-5)]) is None
    assert find_refusal(a_set(), [told("FailedCreate", "no", after_s=0)]) is None
    assert find_refusal(a_set(), []) is None


@pytest.mark.parametrize(
    ("words", "is_so"),
    [
        ('pods "demo-0" is forbidden: violates PodSecurity "restricted:latest": runAsNonRoot != true', True),
        ('pods "demo-0" is forbidden: violates PodSecurity "restricted:v1.30": seccompProfile', True),
        ('pods "demo-0" is forbidden: violates PodSecurity "baseline:latest": hostPath volumes', False),
        ('pods "demo-0" is forbidden: exceeded quota: restricted', False),
    ],
)
def test_a_namespace_says_by_a_refusal_that_it_takes_only_pods_with_the_fewest_rights(words: str, is_so: bool):
    assert wants_confinement(read_refusal(words)) is is_so
