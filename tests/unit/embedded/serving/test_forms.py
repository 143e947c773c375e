"""Forms of answers, and objects between storage and wire."""

import json

import pytest

from tessera.embedded.kinds import Kind
from tessera.embedded.refusals import ApiRefusal
from tessera.embedded.serving.answers import Answer, warned
from tessera.embedded.serving.envelopes import as_stored, event, listed, opened, shown
from tessera.embedded.serving.forms import Form, read_form
from tessera.embedded.serving.sameness import says_the_same
from tessera.embedded.store import Key, Record

THINGS = Kind(group="a.example", version="v1", kind="Thing", plural="things")
RECORD = Record.of(Key("things.a.example", "default", "a"), 7, {"metadata": {"name": "a"}, "size": 1})
WHOLE = {
    "kind": "Thing",
    "apiVersion": "a.example/v1",
    "metadata": {"name": "a", "resourceVersion": "7"},
    "size": 1,
}


@pytest.mark.parametrize(
    ("accept", "form"),
    [
        (b"", Form.OBJECT),
        (b"*/*", Form.OBJECT),
        (b"text/plain", Form.OBJECT),
        (b"application/vnd.kubernetes.protobuf,application/json", Form.OBJECT),
        (b"application/json;as=Table;v=v1;g=meta.k8s.io,application/json", Form.TABLE),
        (b"application/json;as=Table;v=v1beta1;g=meta.k8s.io,application/json", Form.OBJECT),
        (b"application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1", Form.METADATA),
        (b"application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList,application/json", Form.DISCOVERY),
    ],
)
def test_the_first_form_that_we_have_is_given(accept, form):
    assert read_form(accept) is form


def test_a_form_that_we_do_not_have_is_not_acceptable():
    with pytest.raises(ApiRefusal) as refusal:
        read_form(b"application/xml")
    assert refusal.value.code == 406


def test_one_object_is_shown_with_its_kind_in_front():
    assert json.loads(shown(THINGS, RECORD)) == WHOLE == opened(THINGS, RECORD)


@pytest.mark.parametrize("items_have_kinds", [True, False])
def test_a_list_is_made_of_stored_bytes(items_have_kinds):
    whole = json.loads(listed(THINGS, [RECORD, RECORD], {"resourceVersion": "9"}, items_have_kinds=items_have_kinds))
    item = WHOLE if items_have_kinds else as_stored(WHOLE)
    assert whole == {
        "kind": "ThingList",
        "apiVersion": "a.example/v1",
        "metadata": {"resourceVersion": "9"},
        "items": [item, item],
    }


def test_an_event_is_one_line():
    line = event("ADDED", shown(THINGS, RECORD))
    assert line.count(b"\n") == 1
    assert json.loads(line) == {"type": "ADDED", "object": WHOLE}


def test_a_warning_is_escaped_and_told_once():
    answer = warned(Answer(b""), ['unknown field "a"', 'unknown field "a"'])
    assert answer.headers == ((b"warning", b'299 - "unknown field \\"a\\""'),)


def test_the_time_of_a_write_alone_is_no_change():
    def written(time, **more):
        return {"metadata": {"managedFields": [{"manager": "a", "time": time}], "resourceVersion": time} | more}

    assert says_the_same(written("1"), written("2"))
    assert not says_the_same(written("1"), written("1", labels={"a": "b"}))
