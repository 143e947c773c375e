"""Watches: every change once, in order, from a version that the client chooses."""

import pytest

from tests.contract.api import MERGE_PATCH
from tests.contract.objects import config_map

pytestmark = pytest.mark.contract(area="Watching", needed_by="kube")

OURS = "metadata.name!=kube-root-ca.crt"


def version_of(listed_or_read):
    return listed_or_read["metadata"]["resourceVersion"]


@pytest.mark.contract(promise="From the version of a list on, every change comes once and in order")
def test_a_watch_goes_on_where_a_list_ended(config_maps):
    start = version_of(config_maps.listing())
    config_maps.create(config_map("a"))
    config_maps.patch("a", MERGE_PATCH, {"data": {"colour": "blue"}})
    config_maps.delete("a")
    config_maps.create(config_map("b"))
    with config_maps.watch(resourceVersion=start, fieldSelector=OURS) as watch:
        seen = [(event.type, event.name) for event in watch.take(4)]
    assert seen == [("ADDED", "a"), ("MODIFIED", "a"), ("DELETED", "a"), ("ADDED", "b")]


@pytest.mark.contract(promise="Versions of events grow, and a watch can go on from any of them")
def test_a_watch_goes_on_from_an_event(config_maps):
    start = version_of(config_maps.listing())
    for name in ("a", "b", "c"):
        config_maps.create(config_map(name))
    with config_maps.watch(resourceVersion=start, fieldSelector=OURS) as watch:
        versions = [int(version_of(event.object)) for event in watch.take(3)]
    assert versions == sorted(set(versions))
    with config_maps.watch(resourceVersion=str(versions[0]), fieldSelector=OURS) as watch:
        assert [event.name for event in watch.take(2)] == ["b", "c"]


@pytest.mark.contract(promise="A DELETED event shows the last state, with the version of the deletion")
def test_a_deletion_shows_the_last_state_at_a_new_version(config_maps):
    created = config_maps.create(config_map("a"))
    with config_maps.watch(resourceVersion=version_of(created)) as watch:
        config_maps.delete("a")
        event = watch.until(lambda event: event.type == "DELETED")
    assert event.object["data"] == created["data"]
    assert int(version_of(event.object)) > int(version_of(created))


@pytest.mark.contract(promise="Events carry the kind and apiVersion of their object")
def test_an_event_says_what_kind_of_object_it_is_about(config_maps):
    config_maps.create(config_map("a"))
    with config_maps.watch(fieldSelector="metadata.name=a") as watch:
        assert (event := watch.next()).object["kind"] == "ConfigMap"
    assert event.object["apiVersion"] == "v1"


@pytest.mark.contract(
    promise="What starts to match a selector is ADDED, what stops is DELETED", needed_by="kube, scheduler"
)
def test_an_object_enters_and_leaves_a_selection(config_maps):
    created = config_maps.create(config_map("a", labels={"colour": "blue"}))
    with config_maps.watch(resourceVersion=version_of(created), labelSelector="colour=red") as watch:
        for labels in ({"colour": "red"}, {"shape": "round"}, {"colour": "blue"}):
            config_maps.patch("a", MERGE_PATCH, {"metadata": {"labels": labels}})
        events = watch.take(3)
    assert [event.type for event in events] == ["ADDED", "MODIFIED", "DELETED"]
    # As it was while it still matched, at the version at which it stopped.
    assert events[2].object["metadata"]["labels"]["colour"] == "red"


@pytest.mark.contract(
    promise="Without a version a watch begins with what is there, each as ADDED", needed_by="kubectl, Python client"
)
def test_a_watch_without_a_version_begins_with_what_is_there(config_maps):
    config_maps.create(config_map("a"))
    with config_maps.watch(fieldSelector=OURS) as watch:
        assert watch.next()[0] == "ADDED"
        config_maps.create(config_map("b"))
        assert watch.next().name == "b"


@pytest.mark.contract(
    promise="sendInitialEvents begins with what is there and marks its end with an annotated bookmark"
)
def test_the_initial_events_end_with_a_bookmark(config_maps):
    config_maps.create(config_map("a"))
    config_maps.create(config_map("b"))
    query = {"sendInitialEvents": "true", "resourceVersionMatch": "NotOlderThan", "allowWatchBookmarks": "true"}
    with config_maps.watch(fieldSelector=OURS, **query) as watch:
        first, second, bookmark = watch.take(3)
        config_maps.create(config_map("c"))
        assert watch.next().name == "c"
    assert {(event.type, event.name) for event in (first, second)} == {("ADDED", "a"), ("ADDED", "b")}
    assert bookmark.type == "BOOKMARK"
    assert bookmark.object["metadata"]["annotations"] == {"k8s.io/initial-events-end": "true"}
    assert int(version_of(bookmark.object)) >= int(version_of(second.object))


@pytest.mark.contract(
    promise="Before timeoutSeconds ends it, a bookmark tells how far a watch that saw nothing has come"
)
def test_a_bookmark_tells_how_far_a_quiet_watch_has_come(config_maps):
    start = version_of(config_maps.listing())
    query = {"resourceVersion": start, "fieldSelector": "metadata.name=b", "allowWatchBookmarks": "true"}
    with config_maps.watch(timeoutSeconds=4, **query) as watch:
        unseen = config_maps.create(config_map("a"))
        events = list(watch)
    assert {event.type for event in events} == {"BOOKMARK"}
    assert events[-1].object["kind"] == "ConfigMap"
    assert int(version_of(events[-1].object)) >= int(version_of(unseen))


@pytest.mark.contract(promise="Without bookmarks asked for, none is sent and timeoutSeconds ends a quiet watch")
def test_a_quiet_watch_ends_without_an_event(config_maps):
    start = version_of(config_maps.listing())
    with config_maps.watch(resourceVersion=start, timeoutSeconds=1) as watch:
        assert list(watch) == []


@pytest.mark.contract(
    promise="A watch of one object by fieldSelector metadata.name sees that one alone", needed_by="kubectl, Compute"
)
def test_one_object_can_be_watched(config_maps):
    start = version_of(config_maps.listing())
    with config_maps.watch(resourceVersion=start, fieldSelector="metadata.name=b") as watch:
        for name in ("a", "b"):
            config_maps.create(config_map(name))
        assert watch.next().name == "b"


@pytest.mark.contract(promise="A watch of all namespaces sees each of them", needed_by="kube, scheduler")
def test_all_namespaces_can_be_watched_at_once(api, namespace, config_maps):
    everywhere = api.collection("configmaps")
    with everywhere.watch(resourceVersion=version_of(everywhere.listing()), labelSelector=f"run={namespace}") as watch:
        config_maps.create(config_map("a", labels={"run": namespace}))
        assert watch.next().object["metadata"]["namespace"] == namespace
