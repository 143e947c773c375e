"""The policies and conditions that Tessera itself installs, decided by our own server."""

import pytest

from tessera.admission.confining import agent_policy_manifests
from tessera.admission.guarding import Writers, policy_manifests
from tessera.admission.manifests import concerns_us
from tessera.admission.settings import Settings
from tessera.embedded.admitting.matching import VARIABLES
from tessera.embedded.admitting.policies import Policies
from tessera.embedded.admitting.registrations import BINDINGS, POLICIES
from tessera.embedded.refusals import ApiRefusal
from tessera.embedded.rules import compile_rule
from tessera.model.annotations import keys
from tessera.vendors.loading import load_catalogue
from tests.unit.embedded.admitting.requesting import NODES, PODS, Cluster, Person, creation, gpu_pod, pod, update

CATALOGUE = load_catalogue()
SCHEDULER, AGENT = Person("scheduler"), Person("agent", extra={"authentication.kubernetes.io/node-name": ("node-a",)})


@pytest.fixture
def policies():
    writers = Writers(schedulers=(SCHEDULER.name,), agents=(AGENT.name,))
    guard = policy_manifests(CATALOGUE, writers)
    confine = agent_policy_manifests(CATALOGUE, (AGENT.name,))
    return Policies(Cluster(**{POLICIES: [guard[0], confine[0]], BINDINGS: [guard[1], confine[1]]}))


def annotated(document, **annotations):
    return {**document, "metadata": {**document["metadata"], "annotations": annotations}}


ALLOCATED = annotated(pod(nodeName="node-a"), **{keys.ALLOCATION: "card-0"})
PLAIN = annotated(pod(nodeName="node-a"), harmless="yes")


def refusal_of(policies, asked):
    with pytest.raises(ApiRefusal) as refusal:
        policies.validate(asked)
    return refusal.value


def test_people_may_not_write_what_tells_of_cards(policies):
    refusal = refusal_of(policies, creation(PODS, ALLOCATED))
    assert (refusal.code, refusal.reason) == (403, "Forbidden")
    assert f"team/worker: annotation {keys.ALLOCATION} is written by alice" in refusal.message
    assert refusal_of(policies, update(PODS, ALLOCATED, PLAIN)).code == 403


def test_everything_else_about_a_pod_is_free(policies):
    assert policies.validate(creation(PODS, PLAIN)) == []
    assert policies.validate(update(PODS, pod(), PLAIN)) == []
    assert policies.validate(creation(PODS, annotated(pod(), **{keys.PIN: "card-0"}))) == []


def test_the_scheduler_may_write_all_of_it(policies):
    assert policies.validate(update(PODS, PLAIN, ALLOCATED, user=SCHEDULER)) == []


def test_an_agent_may_write_on_pods_of_its_own_node_alone(policies):
    assert policies.validate(update(PODS, PLAIN, ALLOCATED, user=AGENT)) == []
    elsewhere = [annotated(pod(nodeName="node-b"), **notes) for notes in ({}, {keys.ALLOCATION: "card-0"})]
    assert refusal_of(policies, update(PODS, *elsewhere, user=AGENT)).code == 403


def node(name="node-a", **fields):
    return {"metadata": {"name": name, "annotations": {}, "labels": {}}, "spec": {}} | fields


def test_an_agent_writes_what_tells_of_cards_on_its_own_node(policies):
    registered = annotated(node(), **{"hami.io/node-nvidia-register": "GPU-0"})
    assert policies.validate(update(NODES, node(), registered, user=AGENT)) == []
    refusal = refusal_of(policies, update(NODES, node("node-b"), annotated(node("node-b"), a="b"), user=AGENT))
    assert "expected an agent to write its own node and no other" in refusal.message


def test_an_agent_may_not_taint_its_node(policies):
    refusal = refusal_of(policies, update(NODES, node(), node(spec={"taints": []}), user=AGENT))
    assert "nodes/node-a: spec is written by agent of node node-a" in refusal.message


@pytest.mark.parametrize(
    ("document", "is_ours"),
    [
        (pod(), False),
        (gpu_pod(limits={"cpu": "1"}), False),
        (gpu_pod(limits={"nvidia.com/gpu": "1"}), True),
        (gpu_pod(requests={"nvidia.com/gpumem": "8000"}), True),
        (pod(schedulerName="hami-scheduler"), True),
        (pod(initContainers=None, containers=None), False),
        (gpu_pod(limits={keys.CLAIM: "1"}), True),
    ],
)
def test_the_webhook_is_asked_about_pods_that_concern_us(document, is_ours):
    program = compile_rule(concerns_us(CATALOGUE, Settings()), VARIABLES)
    assert program.evaluate({"object": document, "oldObject": None, "request": {}}) is is_ours
