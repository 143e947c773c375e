"""Decisions about numbers of pods: ReplicaSets, StatefulSets, budgets, and what was asked for and not yet seen."""

from datetime import timedelta
from itertools import count as counting

from tessera.embedded.controllers import budgets, replica_sets, stateful_sets
from tessera.embedded.controllers.expectations import PATIENCE_S, Expectations, Outcome
from tessera.embedded.controllers.writes import Create, Delete
from tessera.kube.caching import Change
from tessera.kube.objects import ObjectKey
from tests.unit.embedded.controllers.making import NOW, ago, budget, going, pod, replica_set, stateful_set

OWNER, POD = ObjectKey("default", "web"), ObjectKey("default", "web-1")


def suffixes():
    return (f"s{number}" for number in counting())


def names(pods):
    return [one.metadata.name for one in pods]


def test_pods_that_have_ended_or_are_going_do_not_count():
    pods = [pod("a"), pod("b", "Failed"), going("c")]
    assert len(replica_sets.plan(replica_set("web", 3), pods, suffixes()).make) == 2


def test_those_that_are_missed_least_go_first():
    pods = [pod("ready"), pod("slow", ready=False), pod("waiting", "Pending", ready=False, spec={"nodeName": ""})]
    assert names(replica_sets.plan(replica_set("web", 1), pods, suffixes()).remove) == ["waiting", "slow"]


def test_of_pods_that_are_alike_the_cheap_and_the_young_go_first():
    cheap = pod("cheap", annotations={"controller.kubernetes.io/pod-deletion-cost": "-5"})
    young = pod("young", creationTimestamp=ago(1))
    assert names(replica_sets.plan(replica_set("web", 1), [pod("old"), young, cheap], suffixes()).remove) == [
        "cheap",
        "young",
    ]


def test_a_replica_set_that_is_going_makes_nothing():
    assert replica_sets.plan(replica_set("web", 3, deletionTimestamp=ago(1)), [], suffixes()) == ((), ())


def test_a_pod_is_available_when_it_was_ready_for_long_enough():
    patient = replica_set("web", 1)
    assert replica_sets.next_available_s([pod("a")], 40, NOW) == 10
    assert replica_sets.next_available_s([pod("a")], 20, NOW) is None
    assert replica_sets.status_of(patient, [pod("a")], None, NOW)["availableReplicas"] == 1


def test_what_was_asked_for_is_waited_for_and_not_for_ever():
    now_s = 0.0
    expectations = Expectations(lambda: now_s)
    expectations.expect(OWNER, POD, Outcome.MADE)
    assert expectations.wait_s(OWNER) == PATIENCE_S
    now_s = PATIENCE_S + 1
    assert expectations.wait_s(OWNER) == 0


def test_what_has_shown_is_no_longer_waited_for():
    expectations = Expectations(lambda: 0.0)
    expectations.expect(OWNER, POD, Outcome.MADE)
    expectations.expect(OWNER, POD, Outcome.GOING)
    expectations.see(Change(POD, None, pod("web-1")))
    assert expectations.wait_s(OWNER) == PATIENCE_S
    expectations.see(Change(POD, pod("web-1"), going("web-1")))
    assert expectations.wait_s(OWNER) == 0


def db(number, *, revision=None, **more):
    labels = {"app": "web", stateful_sets.REVISION: revision or stateful_sets.revision_of(stateful_set(0))}
    return pod(f"db-{number}", labels=labels, **more)


def test_the_next_numbered_pod_comes_when_the_one_before_is_ready():
    (first,) = stateful_sets.plan(stateful_set(3), [], NOW)
    assert isinstance(first, Create)
    assert first.key.name == "db-0"
    assert stateful_sets.plan(stateful_set(3), [db(0, ready=False)], NOW) == []
    (second,) = stateful_sets.plan(stateful_set(3), [db(0)], NOW)
    assert second.key.name == "db-1"


def test_a_gap_is_filled_before_anything_else():
    (filled,) = stateful_sets.plan(stateful_set(3), [db(0), db(2)], NOW)
    assert filled.key.name == "db-1"


def test_ordinals_may_start_elsewhere():
    (first,) = stateful_sets.plan(stateful_set(1, ordinals={"start": 5}), [], NOW)
    assert first.key.name == "db-5"


def test_only_the_last_numbered_pod_that_is_too_many_goes():
    (gone,) = stateful_sets.plan(stateful_set(1), [db(0), db(1), db(2)], NOW)
    assert isinstance(gone, Delete)
    assert gone.key.name == "db-2"


def test_an_old_numbered_pod_is_replaced_when_those_after_it_are_well():
    old = "db-before"
    (gone,) = stateful_sets.plan(stateful_set(2), [db(0, revision=old), db(1, revision=old)], NOW)
    assert gone.key.name == "db-1"
    (next_gone,) = stateful_sets.plan(stateful_set(2), [db(0, revision=old), db(1)], NOW)
    assert next_gone.key.name == "db-0"
    kept = {"type": "RollingUpdate", "rollingUpdate": {"partition": 1}}
    assert stateful_sets.plan(stateful_set(2, updateStrategy=kept), [db(0, revision=old), db(1)], NOW) == []


def controlled(name):
    owner = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "rs", "uid": "rs", "controller": True}
    return pod(name, ownerReferences=[owner])


def test_a_budget_of_a_percentage_counts_what_is_wanted_and_not_what_is_there():
    status = budgets.status_of(budget(maxUnavailable="50%"), [controlled("a"), controlled("b")], {"rs": 4}, NOW)
    assert (status["expectedPods"], status["desiredHealthy"], status["disruptionsAllowed"]) == (4, 2, 0)


def test_a_budget_of_a_number_counts_what_is_there():
    status = budgets.status_of(budget(minAvailable=1), [pod("a"), pod("b"), pod("c", ready=False)], {}, NOW)
    assert (status["currentHealthy"], status["disruptionsAllowed"]) == (2, 1)


def test_a_pod_that_was_let_go_counts_as_gone_for_a_while():
    leaving = budget(minAvailable=1, status={"disruptedPods": {"a": ago(5)}})
    pods = [pod("a"), pod("b")]
    status = budgets.status_of(leaving, pods, {}, NOW)
    assert status["disruptionsAllowed"] == 0
    assert budgets.look_again_s(status, NOW) == budgets.EVICTION_S - 5
    later = budgets.status_of(leaving, pods, {}, NOW + timedelta(seconds=budgets.EVICTION_S))
    assert later["disruptionsAllowed"] == 1
    assert "disruptedPods" not in later


def test_a_budget_for_nothing_that_is_wanted_allows_nothing():
    assert budgets.status_of(budget(maxUnavailable=1), [controlled("a")], {"rs": 0}, NOW)["disruptionsAllowed"] == 0
