"""Members of a gang that ask for no card: kube-scheduler must ask us about them, too."""

import pytest

from tests.unit.admission.pods import a_container, a_pod, is_untouched, mutate

GANG = "gpu.scheduling/gang"
CREW = {GANG: "crew"}
MARKED = {"limits": {GANG: "1"}, "requests": {GANG: "1"}}


@pytest.mark.parametrize("name", [None, "default-scheduler"])
def test_a_member_without_cards_is_sent_to_us_and_marked_once(name):
    pod = mutate(a_pod(a_container({"cpu": "1"}), a_container(), annotations=CREW, schedulerName=name))
    assert pod["spec"]["schedulerName"] == "hami-scheduler"
    first, second = pod["spec"]["containers"]
    assert first["resources"]["limits"].pop("cpu") == "1"
    assert first["resources"] == MARKED
    assert GANG not in str(second)
    assert is_untouched(pod)


def test_a_member_of_a_foreign_scheduler_is_left_to_it():
    assert is_untouched(a_pod(a_container(), annotations=CREW, schedulerName="volcano"))


def test_a_member_with_cards_needs_no_mark():
    pod = mutate(a_pod(a_container({"nvidia.com/gpu": "1"}), annotations=CREW))
    assert GANG not in pod["spec"]["containers"][0]["resources"]["limits"]


def test_a_pod_without_cards_that_is_in_no_gang_is_left_alone():
    assert is_untouched(a_pod(a_container()))
