"""A node whose container runtime has no CDI: slower, and still no container with another's cards."""

import json

import pytest

from tests.node.conftest import GpuNode, a_container, a_pod
from tests.node.seeing import assert_sees_what_it_was_given

pytestmark = pytest.mark.timeout(300)
PODS = 8


def test_pods_that_could_be_mistaken_start_one_after_the_other_and_each_sees_its_own_cards(early_node: GpuNode):
    names = [f"pod-{number}" for number in range(PODS)]
    first = a_container("first", memory=111, then="exit 0")
    early_node.create(
        *(a_pod(name, a_container(memory=1000 + number)) for number, name in enumerate(names[: PODS // 2])),
        *(a_pod(name, a_container(memory=200), initContainers=[first]) for name in names[PODS // 2 :]),
    )
    early_node.wait_until_running(*names, timeout_s=180)
    pods = early_node.pods()
    assert sum(assert_sees_what_it_was_given(early_node, pods[name]) for name in names) == PODS + PODS // 2
    events = json.loads(early_node.cluster.kubectl("get", "events", "-o", "json"))["items"]
    reasons = {event["reason"] for event in events if event["involvedObject"]["name"] in names}
    assert "UnexpectedAdmissionError" not in reasons
