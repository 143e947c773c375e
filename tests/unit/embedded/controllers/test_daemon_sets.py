"""What a DaemonSet wants next, from its nodes and pods as they are."""

import itertools
from datetime import UTC, datetime

import pytest

from tessera.embedded.controllers.daemon_sets import node_of, plan, status_of, survey
from tessera.embedded.controllers.hashing import hash_of
from tessera.embedded.controllers.objects import DaemonSet, DaemonSetSpec, Metadata, Node, NodeSpec
from tessera.embedded.controllers.pods import Condition, Pod, Spec, Status

NOW = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
TEMPLATE = {"metadata": {"labels": {"app": "agent"}}, "spec": {"containers": [{"name": "main"}]}}
NEW, OLD = hash_of(TEMPLATE), "older"


def daemon_set(template=None, **strategy):
    spec = DaemonSetSpec(template=template or TEMPLATE, update_strategy=strategy or {"type": "RollingUpdate"})
    return DaemonSet(metadata=Metadata(name="agent", namespace="default", uid="1"), spec=spec)


def node(name, *taints, **labels):
    return Node(metadata=Metadata(name=name, labels=labels), spec=NodeSpec(taints=taints or None))


def pod(node_name, *, revision=NEW, phase="Running", ready=True, name=None):
    conditions = (Condition(type="Ready", status="True"),) if ready else ()
    return Pod(
        metadata=Metadata(name=name or f"on-{node_name}", labels={"controller-revision-hash": revision}),
        spec=Spec(node_name=node_name),
        status=Status(phase=phase, conditions=conditions),
    )


def next_step(wanted, pods, nodes):
    suffixes = (str(number) for number in itertools.count())
    return plan(wanted, survey(wanted, pods, nodes), suffixes, NOW)


def test_each_node_without_a_pod_gets_one_that_can_go_nowhere_else():
    made = next_step(daemon_set(), [pod("a")], [node("a"), node("b")]).make
    field = {"key": "metadata.name", "operator": "In", "values": ["b"]}
    assert [one["spec"]["affinity"]["nodeAffinity"] for one in made] == [
        {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [{"matchFields": [field]}]}}
    ]
    assert node_of(Pod(metadata=Metadata(name="x"), spec=Spec(affinity=made[0]["spec"]["affinity"]))) == "b"
    assert made[0]["metadata"]["ownerReferences"][0]["kind"] == "DaemonSet"


@pytest.mark.parametrize(
    ("taint", "made", "removed"),
    [
        ({"key": "node.kubernetes.io/unschedulable", "effect": "NoSchedule"}, 1, 0),
        ({"key": "node.kubernetes.io/not-ready", "effect": "NoExecute"}, 1, 0),
        ({"key": "mine", "effect": "NoSchedule"}, 0, 0),
        ({"key": "mine", "effect": "NoExecute"}, 0, 1),
    ],
    ids=["cordoned", "not-ready", "closed", "cleared"],
)
def test_a_taint_keeps_new_pods_away_and_only_no_execute_drives_them_off(taint, made, removed):
    nodes = [node("a", taint)]
    assert len(next_step(daemon_set(), [], nodes).make) == made
    assert len(next_step(daemon_set(), [pod("a")], nodes).remove) == removed


def test_nodes_that_the_template_does_not_select_get_none_and_lose_theirs():
    template = {**TEMPLATE, "spec": {**TEMPLATE["spec"], "nodeSelector": {"gpu": "on"}}}
    change = next_step(daemon_set(template), [pod("b", revision=hash_of(template))], [node("a", gpu="on"), node("b")])
    assert [node_of_made(one) for one in change.make] == ["a"]
    assert [one.spec.node_name for one in change.remove] == ["b"]


def node_of_made(made):
    return made["spec"]["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"][
        "nodeSelectorTerms"
    ][0]["matchFields"][0]["values"][0]


def test_a_pod_that_ended_makes_room_and_of_two_on_a_node_one_goes():
    pods = [pod("a", phase="Failed", ready=False), pod("b"), pod("b", name="second")]
    assert [one.metadata.name for one in next_step(daemon_set(), pods, [node("a"), node("b")]).remove] == [
        "on-a",
        "second",
    ]


def test_older_pods_are_replaced_as_many_at_a_time_as_may_be_missing():
    nodes, rolling = [node(name) for name in "abcd"], {"type": "RollingUpdate"}
    pods = [pod(name, revision=OLD) for name in "abcd"]
    two = daemon_set(**rolling, rollingUpdate={"maxUnavailable": "50%"})
    assert [one.spec.node_name for one in next_step(two, pods, nodes).remove] == ["a", "b"]
    pods[:2] = [pod("a", ready=False), pod("b")]
    assert [one.spec.node_name for one in next_step(two, pods, nodes).remove] == ["c"]
    assert next_step(daemon_set(**rolling), pods, nodes).remove == []
    assert next_step(daemon_set(type="OnDelete"), pods, nodes).remove == ()


def test_an_older_pod_that_does_not_work_is_replaced_first_though_others_are_missing():
    nodes = [node("a"), node("b")]
    pods = [pod("a", revision=OLD), pod("b", revision=OLD, ready=False)]
    assert [one.spec.node_name for one in next_step(daemon_set(), pods, nodes).remove] == ["b"]


def test_the_status_counts_nodes():
    pods = [pod("a"), pod("b", revision=OLD, ready=False), pod("d")]
    nodes = [node("a"), node("b"), node("c"), node("d", {"key": "mine", "effect": "NoSchedule"})]
    assert status_of(daemon_set(), survey(daemon_set(), pods, nodes), NOW) == {
        "currentNumberScheduled": 2,
        "numberMisscheduled": 1,
        "desiredNumberScheduled": 3,
        "numberReady": 1,
        "observedGeneration": 0,
        "updatedNumberScheduled": 1,
        "numberAvailable": 1,
        "numberUnavailable": 2,
    }
