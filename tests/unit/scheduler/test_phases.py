"""What kube-scheduler is told: which nodes pass, why the others do not, and how they rank."""

from typing import Any

import pytest

from tessera.kube.caching import Change
from tessera.kube.objects import ObjectKey
from tessera.model.extender import MAX_SCORE
from tessera.scheduler.phases import Phases
from tests.unit.scheduler.cluster import a_pod, a_world, node_document, put_document, put_node, see, see_deleted

A100 = 81_920


def test_every_node_that_could_take_the_pod_passes_and_each_other_has_a_sentence():
    world = a_world(a="1xA100-SXM4-80GB", b="1xA100-SXM4-80GB", c="")
    verdict = Phases(world).filter(a_pod(memory=4000), ["c", "b", "ghost", "a"], 0)
    assert verdict.passed == ["b", "a"]
    assert verdict.failed == {
        "c": "the node has no NVIDIA cards",
        "ghost": "the node has not registered any cards",
    }


def test_a_pod_without_cards_passes_everywhere():
    verdict = Phases(a_world()).filter({"metadata": {}, "spec": {"containers": [{"name": "x"}]}}, ["a", "b"], 0)
    assert (verdict.passed, verdict.failed) == (["a", "b"], {})


def test_the_best_node_stands_alone_at_the_top_and_the_others_below():
    world = a_world(a="2xA100-SXM4-80GB", b="2xA100-SXM4-80GB", c="2xA100-SXM4-80GB")
    phases = Phases(world)
    assert phases.score(a_pod("one"), ["c", "a", "b"], 0) == [MAX_SCORE - 1, MAX_SCORE, MAX_SCORE - 1]


def test_the_next_pod_is_scored_as_if_the_first_were_there():
    world = a_world(a="1xA100-SXM4-80GB", b="1xA100-SXM4-80GB")
    phases = Phases(world)
    assert phases.score(a_pod("one"), ["a", "b"], 0) == [MAX_SCORE, MAX_SCORE - 1]
    assert phases.score(a_pod("two"), ["a", "b"], 0) == [0, MAX_SCORE], "the only card of a is on offer"


def test_an_offer_is_never_the_reason_why_a_pod_has_to_wait():
    world = a_world(a="1xA100-SXM4-80GB")
    phases = Phases(world)
    phases.score(a_pod("one"), ["a"], 0)
    assert phases.filter(a_pod("two"), ["a"], 0).passed == ["a"]
    assert world.ledger.holding("uid-one") is not None, "looking past the offer does not end it"


def test_an_offer_ends_after_two_seconds():
    world = a_world(a="1xA100-SXM4-80GB", b="1xA100-SXM4-80GB")
    phases = Phases(world)
    phases.score(a_pod("one"), ["a", "b"], 0)
    assert phases.score(a_pod("two"), ["a", "b"], 2.0) == [MAX_SCORE, MAX_SCORE - 1]


def test_whoever_waits_hears_that_an_offer_has_ended():
    world = a_world(a="1xA100-SXM4-80GB")
    phases, told = Phases(world), list[bool]()
    world.freed = lambda: told.append(phases.could_be_placed("default", world.request_of(a_pod("two"))))
    phases.score(a_pod("one"), ["a"], 0)
    phases.gangs.expire(1.9)
    assert told == []
    phases.gangs.expire(2.0)
    assert told == [True]


def test_a_pod_that_is_tried_again_does_not_stand_in_its_own_way():
    phases = Phases(a_world(a="1xA100-SXM4-80GB"))
    for _ in range(3):
        assert phases.filter(a_pod("one"), ["a"], 0).passed == ["a"]
        assert phases.score(a_pod("one"), ["a"], 0) == [MAX_SCORE]


def test_what_a_bound_pod_holds_is_taken_and_what_a_finished_one_held_is_free():
    world = a_world(a="1xA100-SXM4-80GB")
    phases = Phases(world)
    uuid = world.ledger.fleet.uuids[0][0]
    bound = a_pod("old", nodeName="a")
    bound["metadata"]["annotations"] = {"hami.io/vgpu-devices-allocated": f"{uuid},NVIDIA,{A100},0:;"}
    see(world, bound)
    assert phases.filter(a_pod("new", memory=1), ["a"], 0).failed == {
        "a": "no card has 1 MiB free, the roomiest has 0 MiB"
    }
    see(world, {**bound, "status": {"phase": "Succeeded"}})
    assert phases.filter(a_pod("new", memory=1), ["a"], 0).passed == ["a"]


def test_a_quota_that_is_used_up_refuses_every_node_for_good():
    world = a_world(a="1xA100-SXM4-80GB")
    quota = {"metadata": {"name": "q", "namespace": "default"}, "spec": {"hard": {"limits.nvidia.com/gpumem": "1000"}}}
    world.quota_changed(Change(ObjectKey("default", "q"), None, quota))
    verdict = Phases(world).filter(a_pod(memory=2000), ["a"], 0)
    assert verdict.hopeless == {"a": "default: NVIDIA memory_mib would be 2000, the quota allows 1000"}


def test_the_same_state_gives_the_same_words():
    world = a_world(a="1xA100-SXM4-80GB")
    phases, wanted = Phases(world), a_pod(count=2)
    first = phases.filter(wanted, ["a"], 0).failed
    assert phases.filter(wanted, ["a"], 5).failed == first
    put_node(world, "a", "2xA100-SXM4-80GB")
    assert phases.filter(wanted, ["a"], 6).passed == ["a"]


THREE = dict.fromkeys("abc", "1xA100-SXM4-80GB")
FAR_FROM_OTHERS = {
    "podAntiAffinity": {
        "preferredDuringSchedulingIgnoredDuringExecution": [
            {"weight": 1, "podAffinityTerm": {"labelSelector": {}, "topologyKey": "zone"}}
        ]
    }
}


def test_where_our_scores_decide_alone_only_the_node_that_they_are_for_is_named():
    phases, wanted = Phases(a_world(**THREE)), a_pod("one")
    scores = Phases(a_world(**THREE)).score(wanted, ["c", "b", "ghost"], 0)
    assert scores == [MAX_SCORE - 1, MAX_SCORE, 0]
    verdict = phases.choose(wanted, ["c", "b", "ghost"], 0)
    assert (verdict.passed, verdict.failed, verdict.hopeless) == (["b"], {}, {})
    assert phases.choose(a_pod("two"), ["c", "b"], 0).passed == ["c"], "the only card of b is on offer"


def test_a_pod_that_prefers_nodes_is_shown_all_that_pass():
    node = {"nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": [{"weight": 1, "preference": {}}]}}
    near = {"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [{"topologyKey": "zone"}]}}
    spread = {
        "topologySpreadConstraints": [{"maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "DoNotSchedule"}]
    }
    preferences: list[dict[str, Any]] = [{"affinity": node}, {"affinity": near}, {"affinity": FAR_FROM_OTHERS}, spread]
    for preferring in preferences:
        assert Phases(a_world(**THREE)).choose(a_pod(**preferring), ["c", "b"], 0).passed == ["c", "b"], preferring


def test_a_pod_that_needs_certain_nodes_and_prefers_none_leaves_the_choice_to_us():
    term = {"matchExpressions": [{"key": "kubernetes.io/hostname", "operator": "Exists"}]}
    needs = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [term]}}}
    apart = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [{"topologyKey": "zone"}]}}
    assert Phases(a_world(**THREE)).choose(a_pod(affinity=needs | apart), ["c", "b"], 0).passed == ["b"]


def far_from(labels: dict[str, str], **term: Any) -> dict[str, Any]:
    wish = {"labelSelector": {"matchLabels": labels}, "topologyKey": "zone", **term}
    preferred = [{"weight": 1, "podAffinityTerm": wish}]
    return {"podAntiAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": preferred}}


def test_what_another_pod_prefers_of_its_neighbours_counts_while_it_is_there():
    world = a_world(**THREE)
    phases, neighbour = Phases(world), a_pod("neighbour", affinity=FAR_FROM_OTHERS)
    see(world, neighbour)
    see(world, neighbour)
    assert phases.choose(a_pod(), ["c", "b"], 0).passed == ["c", "b"]
    see(world, {**neighbour, "status": {"phase": "Succeeded"}})
    assert phases.choose(a_pod(), ["c", "b"], 0).passed == ["b"]
    see(world, neighbour)
    see_deleted(world, neighbour)
    assert phases.choose(a_pod(), ["c", "b"], 0).passed == ["b"]


@pytest.mark.parametrize(
    ("affinity", "counts"),
    [
        (far_from({"app": "web"}), True),
        (far_from({"app": "dns"}), False),
        (far_from({"app": "web"}, namespaces=["kube-system"]), False),
        (far_from({"app": "web"}, namespaces=["kube-system", "default"]), True),
        (far_from({"app": "web"}, namespaceSelector={}), True),
        (far_from({}, labelSelector=None), False),
        (far_from({}, labelSelector={"matchExpressions": [{"key": "app", "operator": "Exists"}]}), True),
        (
            far_from({}, labelSelector={"matchExpressions": [{"key": "app", "operator": "NotIn", "values": ["web"]}]}),
            False,
        ),
    ],
)
def test_a_preference_counts_for_those_whom_it_is_about(affinity: dict[str, Any], counts: bool):
    world = a_world(**THREE)
    see(world, a_pod("neighbour", affinity=affinity))
    wanted = a_pod()
    wanted["metadata"]["labels"] = {"app": "web"}
    assert Phases(world).choose(wanted, ["c", "b"], 0).passed == (["c", "b"] if counts else ["b"])


def test_two_who_prefer_the_same_count_until_both_are_gone():
    world = a_world(**THREE)
    twins = [a_pod(name, affinity=FAR_FROM_OTHERS) for name in ("one", "two")]
    for twin in twins:
        see(world, twin)
    see_deleted(world, twins[0])
    assert Phases(world).choose(a_pod(), ["c", "b"], 0).passed == ["c", "b"]
    see_deleted(world, twins[1])
    assert Phases(world).choose(a_pod(), ["c", "b"], 0).passed == ["b"]


def test_a_preference_counts_before_the_watch_has_shown_who_has_it():
    world = a_world(**THREE)
    phases = Phases(world)
    shy = a_pod("shy", affinity=FAR_FROM_OTHERS)
    phases.choose(shy, ["c", "b"], 0)
    assert phases.choose(a_pod(), ["c", "b"], 0).passed == ["c", "b"]
    see_deleted(world, shy)
    assert phases.choose(a_pod(), ["c", "b"], 0).passed == ["b"]


def test_a_node_that_would_rather_be_left_alone_is_for_kube_scheduler_to_weigh():
    world = a_world(**THREE)
    reluctant = node_document("b", THREE["b"])
    reluctant["spec"] = {"taints": [{"key": "old", "effect": "PreferNoSchedule"}]}
    put_document(world, reluctant)
    assert Phases(world).choose(a_pod(), ["c", "b"], 0).passed == ["c", "b"]
    world.node_changed(Change(ObjectKey("", "b"), None, None))
    assert Phases(world).choose(a_pod(), ["c", "a"], 0).passed == ["a"]


def test_what_cannot_be_chosen_for_is_refused_as_a_filter_refuses_it():
    world = a_world(a="1xA100-SXM4-80GB")
    phases = Phases(world)
    assert phases.choose(a_pod(count=2), ["a", "ghost"], 0).failed.keys() == {"a", "ghost"}
    phases.choose(a_pod("one"), ["a"], 0)
    assert phases.choose(a_pod("two"), ["a"], 0).passed == ["a"], "an offer makes nobody wait"


def test_a_quota_that_is_used_up_leaves_nothing_to_choose():
    world = a_world(a="1xA100-SXM4-80GB")
    quota = {"metadata": {"name": "q", "namespace": "default"}, "spec": {"hard": {"limits.nvidia.com/gpu": "0"}}}
    world.quota_changed(Change(ObjectKey("default", "q"), None, quota))
    for decide in (Phases(world).choose, Phases(world).place):
        verdict = decide(a_pod(), ["a"], 0)
        assert (verdict.passed, list(verdict.hopeless)) == ([], ["a"])
