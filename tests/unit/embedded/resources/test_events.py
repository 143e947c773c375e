"""Events are one thing in two forms."""

from hypothesis import given
from hypothesis import strategies as st

from tessera.embedded.resources.events import from_core, to_core
from tests.unit.embedded.resources.making import NAMESPACE, complaints, created, served

EVENTS = served("events")
NEW_EVENTS = served("events", "events.k8s.io")
ABOUT = {"kind": "Pod", "namespace": NAMESPACE, "name": "worker"}
FIELDS = ["involvedObject", "message", "source", "firstTimestamp", "count", "reportingComponent", "reason", "series"]


def event(**fields):
    return {"metadata": {"name": "e"}, "involvedObject": ABOUT, "reason": "Bound"} | fields


def test_what_is_written_in_one_form_is_read_in_the_other():
    stored = created(EVENTS, event(message="…", count=1, source={"component": "tessera"}))
    seen = from_core(stored)
    assert seen["apiVersion"] == "events.k8s.io/v1"
    assert (seen["regarding"]["name"], seen["note"], seen["deprecatedCount"]) == ("worker", "…", 1)
    assert seen["deprecatedSource"] == {"component": "tessera"}


@given(st.dictionaries(st.sampled_from(FIELDS), st.text() | st.integers()))
def test_translating_there_and_back_changes_nothing(fields):
    core = {"apiVersion": "v1", "kind": "Event", "metadata": {}} | fields
    assert to_core(from_core(core)) == core


def test_both_forms_are_kept_under_one_name():
    assert NEW_EVENTS.resource == EVENTS.resource == "events"
    assert NEW_EVENTS.from_stored is from_core
    assert EVENTS.from_stored is None


def test_times_that_are_not_known_are_null():
    made = created(EVENTS, event())
    assert (made["firstTimestamp"], made["lastTimestamp"], made["eventTime"]) == (None, None, None)
    assert made["source"] == {}


def test_an_event_is_in_the_namespace_of_what_it_is_about():
    told = complaints(EVENTS, event(involvedObject=ABOUT | {"namespace": "other"}))
    assert told == {"involvedObject.namespace": 'Invalid value: "other": does not match event.namespace'}


def test_the_newer_form_must_say_when_and_of_which_type():
    told = complaints(NEW_EVENTS, event())
    assert told["eventTime"] == "Required value"
    assert told["type"] == 'Invalid value: "": has invalid value: '
    complete = event(eventTime="2026-01-01T00:00:00.000000Z", type="Normal", action="Bind")
    assert complaints(NEW_EVENTS, complete) == {}
