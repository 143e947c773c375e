from tessera.embedded.controllers.ownership import Ask, Collect, Disown, Graph, Release, judge
from tests.unit.embedded.controllers.making import ago, owned_by, thing

MAPS = ("", "configmaps")


def graph_of(*things):
    graph = Graph()
    for one in things:
        graph.put(MAPS, one)
    return graph


def verdict(graph, name):
    node = graph.get(f"uid-of-{name}")
    assert node is not None
    return judge(node, graph)


def leaving(name, finalizer, **more):
    return thing(name, deletionTimestamp=ago(1), finalizers=[finalizer], **more)


def test_what_has_an_owner_that_is_there_is_left():
    assert verdict(graph_of(thing("owner"), thing("owned", ownerReferences=owned_by("owner"))), "owned") is None


def test_an_owner_that_nobody_knows_is_asked_for_and_one_that_went_is_not():
    graph = graph_of(thing("owned", ownerReferences=owned_by("owner")))
    assert isinstance(verdict(graph, "owned"), Ask)
    graph.note_gone("uid-of-owner")
    assert verdict(graph, "owned") == Collect("Background")


def test_when_an_owner_goes_what_it_owned_is_looked_at():
    graph = graph_of(thing("owner"), thing("owned", ownerReferences=owned_by("owner")))
    assert graph.remove("uid-of-owner") == {"uid-of-owned"}
    assert verdict(graph, "owned") == Collect("Background")


def test_what_arrives_before_its_owner_is_looked_at_again_when_the_owner_comes():
    graph = graph_of(thing("owned", ownerReferences=owned_by("owner")))
    assert "uid-of-owned" in graph.put(MAPS, thing("owner"))


def test_of_two_owners_one_is_enough_and_the_other_is_struck_off():
    both = owned_by("owner") + owned_by("other")
    graph = graph_of(thing("owner"), thing("other"), thing("owned", ownerReferences=both))
    graph.remove("uid-of-owner")
    found = verdict(graph, "owned")
    assert isinstance(found, Disown)
    assert found.owners == {"uid-of-owner"}


def test_in_the_foreground_an_owner_waits_for_those_that_block_it_alone():
    blocking = thing("owned", ownerReferences=owned_by("owner", blockOwnerDeletion=True))
    graph = graph_of(leaving("owner", "foregroundDeletion"), blocking)
    assert verdict(graph, "owner") is None
    assert verdict(graph, "owned") == Collect("Background")
    lax = graph_of(leaving("owner", "foregroundDeletion"), thing("owned", ownerReferences=owned_by("owner")))
    assert verdict(lax, "owner") == Release("foregroundDeletion")


def test_in_the_foreground_what_owns_something_itself_waits_too():
    middle = thing("middle", ownerReferences=owned_by("owner", blockOwnerDeletion=True))
    leaf = thing("leaf", ownerReferences=owned_by("middle", blockOwnerDeletion=True))
    graph = graph_of(leaving("owner", "foregroundDeletion"), middle, leaf)
    assert verdict(graph, "middle") == Collect("Foreground")


def test_the_last_that_goes_calls_the_owner_that_waits():
    blocking = thing("owned", ownerReferences=owned_by("owner", blockOwnerDeletion=True))
    graph = graph_of(leaving("owner", "foregroundDeletion"), blocking)
    assert graph.remove("uid-of-owned") == {"uid-of-owner"}
    assert verdict(graph, "owner") == Release("foregroundDeletion")


def test_in_a_circle_nobody_waits_for_ever():
    one = leaving("one", "foregroundDeletion", ownerReferences=owned_by("other", blockOwnerDeletion=True))
    other = leaving("other", "foregroundDeletion", ownerReferences=owned_by("one", blockOwnerDeletion=True))
    assert verdict(graph_of(one, other), "one") == Release("foregroundDeletion")


def test_orphans_are_freed_before_their_owner_goes():
    graph = graph_of(leaving("owner", "orphan"), thing("owned", ownerReferences=owned_by("owner")))
    found = verdict(graph, "owner")
    assert isinstance(found, Disown)
    assert [one.metadata.name for one in found.dependents] == ["owned"]
    assert graph.put(MAPS, thing("owned")) == {"uid-of-owner"}
    assert verdict(graph, "owner") == Release("orphan")


def test_something_that_goes_for_another_reason_is_left():
    graph = graph_of(leaving("owned", "test.example/hold", ownerReferences=owned_by("owner")))
    assert verdict(graph, "owned") is None


def test_nothing_is_owned_from_another_namespace():
    graph = graph_of(thing("owner", namespace="elsewhere"), thing("owned", ownerReferences=owned_by("owner")))
    assert verdict(graph, "owned") == Collect("Background")
    cluster_wide = graph_of(thing("owner", namespace=""), thing("owned", ownerReferences=owned_by("owner")))
    assert verdict(cluster_wide, "owned") is None
