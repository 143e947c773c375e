"""The policy that keeps agents to their nodes, on a real API server: whose GpuNodeStatus an agent may write.

What it says of nodes, leases and pods is tried in tests/chart, with the rights that an agent has.
"""

import json

import pytest

from tessera.admission.confining import agent_policy_manifests
from tessera.model.definitions import load_definitions
from testbed.requirements import TestbedFailed
from tests.admission.conftest import CATALOGUE
from tests.admission.users import AGENT, User, an_agent, who_may_try_all
from tests.admission.waiting import eventually

pytestmark = pytest.mark.usefixtures("policy")
EXPECTED = "expected an agent to write the one that is named like its own node"
TOTAL = json.dumps({"status": {"total": 4}})


def a_status(node, *, spoken_for=""):
    return {
        "apiVersion": "gpu.scheduling/v1",
        "kind": "GpuNodeStatus",
        "metadata": {"name": node},
        "spec": {"nodeName": spoken_for or node},
    }


@pytest.fixture(scope="module")
def policy(admission_api):
    definitions = [one for one in load_definitions() if one["spec"]["names"]["kind"] == "GpuNodeStatus"]
    documents = (*definitions, *who_may_try_all(), *agent_policy_manifests(CATALOGUE, (AGENT,)))
    admission_api.apply(*documents)
    eventually(lambda: is_confined(admission_api))
    yield
    admission_api.delete(*documents)


def is_confined(api):
    try:
        User(api, "default", (f"--as={AGENT}",)).do("create", "--dry-run=server", "-f", "-", input=a_status("canary"))
    except TestbedFailed as refusal:
        return "denied request" in str(refusal)
    return False


@pytest.fixture
def agent(admission_api):
    return an_agent(admission_api, "default", "gpu-07")


@pytest.fixture
def user(admission_api):
    return User(admission_api, "default")


def test_an_agent_writes_the_status_of_its_own_node(agent, user):
    agent.do("create", "-f", "-", input=a_status("gpu-07"))
    agent.do("patch", "gns", "gpu-07", "--subresource=status", "--type=merge", f"--patch={TOTAL}")
    agent.do("label", "gns", "gpu-07", "a=b")
    assert user.do("get", "gns", "gpu-07", "-o", "jsonpath={.status.total}") == "4"
    user.do("delete", "gns", "gpu-07")


@pytest.mark.parametrize(("name", "spoken_for"), [("gpu-08", "gpu-08"), ("gpu-07", "gpu-08"), ("gpu-08", "gpu-07")])
def test_an_agent_makes_no_status_for_another_node(agent, name, spoken_for):
    said = agent.refusal("create", "-f", "-", input=a_status(name, spoken_for=spoken_for))
    assert said.endswith(f"is written by {AGENT} of node gpu-07, {EXPECTED}")


def test_an_agent_changes_no_status_of_another_node_and_deletes_none(agent, user):
    user.do("create", "-f", "-", input=a_status("gpu-08"))
    patch = ("patch", "gns", "gpu-08", "--subresource=status", "--type=merge", f"--patch={TOTAL}")
    for attempt in (patch, ("label", "gns", "gpu-08", "a=b"), ("delete", "gns", "gpu-08")):
        assert agent.refusal(*attempt) == (f"gpunodestatuses/gpu-08 is written by {AGENT} of node gpu-07, {EXPECTED}")
    user.do("delete", "gns", "gpu-08")
