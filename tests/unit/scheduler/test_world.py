"""What a bound pod holds stays charged, whatever becomes of what is written on it."""

import msgspec

from tessera.kube.caching import Change
from tessera.kube.objects import ObjectKey
from tessera.kube.pods import Pod
from tessera.model.annotations.binding import bind_marks
from tessera.scheduler.nodes import CachedNode
from tessera.scheduler.phases import Phases
from tests.unit.scheduler.cluster import a_pod, a_world, node_document, put_node, see, see_deleted

WHOLE = 81_920


def a_bound_pod(world, name="old"):
    pod = a_pod(name, memory=WHOLE)
    allocation = world.decider.allocate(world.request_of(pod), 0)
    annotations, _ = bind_marks(allocation, {world.ledger.fleet.uuids[0][0]: 0}, world.reader.allocation_keys, 1)
    pod["metadata"]["annotations"] = annotations
    pod["spec"]["nodeName"] = "a"
    return pod


def is_free(world) -> bool:
    return Phases(world).filter(a_pod("new", memory=1), ["a"], 0).passed == ["a"]


def test_a_pod_that_cannot_be_read_any_more_still_holds_its_cards():
    world = a_world(a="1xA100-SXM4-80GB")
    pod = a_bound_pod(world)
    pod["metadata"]["annotations"]["nvidia.com/numa-bind"] = "maybe"
    see(world, pod)
    assert not is_free(world)
    assert "numa-bind" in world.complaints["pod default/old"][0]


def test_annotations_that_vanish_free_nothing():
    world = a_world(a="1xA100-SXM4-80GB")
    pod = a_bound_pod(world)
    see(world, pod)
    bare = {**pod, "metadata": {**pod["metadata"], "annotations": {}}}
    see(world, bare)
    assert not is_free(world)
    assert "that its annotations no longer name" in world.complaints["pod default/old"][0]
    see(world, pod)
    assert "pod default/old" not in world.complaints, "what is mended is no longer complained of"
    see_deleted(world, pod)
    assert is_free(world)


def test_room_is_told_when_a_pod_ends_or_a_node_changes():
    world = a_world(a="1xA100-SXM4-80GB")
    told: list[str] = []
    world.freed = lambda: told.append("freed")
    pod = a_bound_pod(world)
    see(world, pod)
    assert told == []
    see_deleted(world, pod)
    assert told == ["freed"]


def test_a_pod_that_only_changes_is_no_room_and_wakes_nobody():
    world = a_world(a="1xA100-SXM4-80GB")
    told: list[str] = []
    world.freed = lambda: told.append("freed")
    see(world, a_pod("waiting"))
    assert told == []


def test_a_handshake_or_a_heartbeat_is_no_news():
    world = a_world(n1="1xT4")
    document = node_document("n1", "1xT4")
    first = msgspec.convert(document, CachedNode)
    document["metadata"]["resourceVersion"] = "2"
    document["metadata"]["annotations"]["hami.io/node-handshake-nvidia"] = "Reported later"
    told, before = list[None](), world.ledger.fleet.sequence
    world.freed = lambda: told.append(None)
    world.node_changed(Change(ObjectKey("", "n1"), first, msgspec.convert(document, CachedNode)))
    assert (world.ledger.fleet.sequence, told) == (before, [])
    document["metadata"]["annotations"]["hami.io/device-cordon"] = "GPU-1"
    world.node_changed(Change(ObjectKey("", "n1"), first, msgspec.convert(document, CachedNode)))
    assert world.ledger.fleet.sequence > before
    assert told


def test_pods_on_a_node_that_registers_its_cards_later_are_told_of_then():
    world = a_world()
    lacking: list[str] = []
    world.lacks_cards = lambda key: lacking.append(str(key))
    see(world, a_pod("early", nodeName="a"))
    lacking.clear()
    put_node(world, "a", "1xA100-SXM4-80GB")
    assert lacking == ["default/early"]


def test_cards_may_still_be_given_to_pods_that_ask_and_have_none_on_a_node_of_ours():
    world = a_world(a="1xA100-SXM4-80GB")
    plain, leaving = a_pod("plain", nodeName="a"), a_pod("leaving", nodeName="a")
    plain["spec"]["containers"][0]["resources"] = {}
    leaving["metadata"]["deletionTimestamp"] = "2026-11-15T10:00:00Z"
    over = {**a_pod("over", nodeName="a"), "status": {"phase": "Failed"}}
    pods = (a_pod("new"), a_pod("bare", nodeName="a"), a_pod("abroad", nodeName="b"), plain, leaving, over)
    undecided = [pod["metadata"]["name"] for pod in pods if world.is_undecided(msgspec.convert(pod, Pod))]
    assert undecided == ["new", "bare"]
    assert not world.is_undecided(msgspec.convert(a_bound_pod(world), Pod))


def test_a_node_whose_register_cannot_be_true_is_refused_with_that_reason():
    world = a_world(a="300xA100-SXM4-80GB")
    assert Phases(world).filter(a_pod(), ["a", "b"], 0).failed == {
        "a": "node a reports 300 cards, expected at most 256",
        "b": "the node has not registered any cards",
    }


def test_there_is_room_only_where_somebody_held_some():
    world, told = a_world(a="1xA100-SXM4-80GB"), list[str]()
    world.freed = lambda: told.append("room")
    waiting = a_pod("waiting")
    see(world, waiting)
    see_deleted(world, waiting)
    assert told == []
    bound = a_pod("bound", nodeName="a")
    see(world, bound)
    see_deleted(world, bound)
    assert told == ["room"]
