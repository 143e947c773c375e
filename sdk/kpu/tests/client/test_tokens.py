"""Where the token of a Compute is found."""

import pytest

from kpu.client.models import KpuV1alpha1Compute
from kpu.client.tokens import InSecret, find_token
from kpu.errors import Unauthenticated

FROM_POD = {"fieldRef": {"fieldPath": "metadata.uid"}}


def a_compute(*env):
    return KpuV1alpha1Compute.from_dict({"metadata": {"name": "worker", "namespace": "lab"}, "spec": {"env": [*env]}})


@pytest.mark.parametrize(
    ("env", "found"),
    [
        ([], InSecret("worker-token", "token")),
        ([{"name": "OTHER", "value": "x"}], InSecret("worker-token", "token")),
        ([{"name": "KPU_TOKEN", "value": "mine"}], "mine"),
        ([{"name": "KPU_TOKEN", "value": "pa$$word$"}], "pa$word$"),
        (
            [{"name": "KPU_TOKEN", "valueFrom": {"secretKeyRef": {"name": "team", "key": "a"}}}],
            InSecret("team", "a"),
        ),
    ],
)
def test_the_token_is_that_of_the_secret_unless_env_has_another(env, found):
    assert find_token(a_compute(*env)) == found


@pytest.mark.parametrize(
    "variable",
    [
        {"name": "KPU_TOKEN_FILE", "value": "/run/token"},
        {"name": "KPU_TOKEN", "valueFrom": FROM_POD},
        {"name": "KPU_TOKEN", "value": "$(OTHER)-token"},
    ],
)
def test_a_token_that_only_the_pod_can_know_is_told_of(variable):
    with pytest.raises(Unauthenticated, match=f"by {variable['name']} in env, that only its pod can know"):
        find_token(a_compute({"name": "KPU_TOKEN", "value": "mine"}, variable))
