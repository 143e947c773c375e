"""What a client is told when it asks for a past that the server no longer has."""

import pytest

from tests.contract.objects import config_map
from tests.contract.refusals import refused

pytestmark = pytest.mark.contract(area="History", needed_by="kube")


@pytest.fixture
def events(api, namespace):
    """Events are read from storage and never from a cache of recent states."""
    events = api.collection("events", namespace)
    for name in ("a", "b", "c"):
        events.create({"metadata": {"name": name}, "involvedObject": {"namespace": namespace}})
    return events


def forget_everything_until_now(engine, config_maps):
    engine.forget_history(config_maps.create(config_map("later"))["metadata"]["resourceVersion"])


@pytest.mark.contract(promise="A watch from a version that is no longer known gets an ERROR event with 410 Expired")
def test_a_watch_from_a_forgotten_version_says_so(engine, config_maps, widgets):
    forget_everything_until_now(engine, config_maps)
    with widgets.watch(resourceVersion="1") as watch:
        event = watch.next()
    assert event.type == "ERROR"
    assert (event.object["kind"], event.object["code"], event.object["reason"]) == ("Status", 410, "Expired")


@pytest.mark.contract(promise="An old continue token is 410 Expired, with a new token for the rest as it is now")
def test_an_expired_token_comes_with_one_that_goes_on(engine, config_maps, events):
    first = events.listing(limit=1)
    events.delete("c")
    forget_everything_until_now(engine, config_maps)
    with refused(410, "Expired") as refusal:
        events.listing(**{"continue": first["metadata"]["continue"]})
    rest = events.names(**{"continue": refusal.value.body["metadata"]["continue"]})
    assert rest == ["b"]


@pytest.mark.contract(promise="A list at exactly a version that is no longer known is 410 Expired")
def test_a_forgotten_state_cannot_be_listed(engine, config_maps, events):
    version = events.listing()["metadata"]["resourceVersion"]
    forget_everything_until_now(engine, config_maps)
    with refused(410, "Expired"):
        events.listing(resourceVersion=version, resourceVersionMatch="Exact")
