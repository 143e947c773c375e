"""Which container a request means."""

import pytest

from tessera.embedded.doors.containers import choose_container
from tessera.embedded.refusals import ApiRefusal


def pod(*names, first=()):
    spec = {"containers": [{"name": name} for name in names], "initContainers": [{"name": name} for name in first]}
    return {"metadata": {"name": "worker"}, "spec": spec}


def test_the_only_container_needs_no_name():
    assert choose_container(pod("main", first=["setup"]), {}) == "main"


def test_an_init_container_can_be_named():
    assert choose_container(pod("main", first=["setup"]), {"container": "setup"}) == "setup"


@pytest.mark.parametrize(
    ("chosen", "query", "message"),
    [
        (pod("a", "b"), {}, "a container name must be specified for pod worker, choose one of: [a b]"),
        (
            pod("a", "b", first=["c"]),
            {},
            "a container name must be specified for pod worker, choose one of: [a b]"
            " or one of the init containers: [c]",
        ),
        (pod("a"), {"container": "z"}, "container z is not valid for pod worker"),
    ],
)
def test_what_is_not_clear_is_a_bad_request(chosen, query, message):
    with pytest.raises(ApiRefusal) as refusal:
        choose_container(chosen, query)
    assert (refusal.value.code, refusal.value.message) == (400, message)
