"""What a bound pod holds stays charged, whatever becomes of what is written on it."""

from tessera.model.annotations.binding import bind_marks
from tessera.scheduler.phases import Phases
from tests.unit.scheduler.cluster import a_pod, a_world, see, see_deleted

WHOLE = 81_920


def a_bound_pod(world, name="old"):
    pod = a_pod(name, memory=WHOLE)
    allocation = world.decider.allocate(world.request_of(pod), 0)
    annotations, _ = bind_marks(allocation, {world.ledger.fleet.uuids[0][0]: 0}, world.allocation_keys, 1)
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
