"""Defaults, and what becomes of null."""

from hypothesis import given
from hypothesis import strategies as st

from tessera.embedded.schemas import read_definition
from tests.unit.embedded.schemas.samples import POD, schema_of, widgets

TOPOLOGY = {"type": "object", "default": {}, "properties": {"mode": {"type": "string", "default": "Preferred"}}}


def test_a_default_is_filled_in_also_inside_of_another_default():
    schema = widgets(policy={"type": "string", "default": "spread"}, topology=TOPOLOGY)
    assert schema.defaulted({"spec": {}}) == {"spec": {"policy": "spread", "topology": {"mode": "Preferred"}}}


def test_a_default_fills_what_is_there_and_not_what_is_absent_without_one():
    topology = {key: value for key, value in TOPOLOGY.items() if key != "default"}
    schema = widgets(topology=topology)
    assert schema.defaulted({"spec": {}}) == {"spec": {}}
    assert schema.defaulted({"spec": {"topology": {}}}) == {"spec": {"topology": {"mode": "Preferred"}}}


def test_elements_of_lists_and_maps_get_their_defaults():
    schema = widgets(
        list={"type": "array", "items": TOPOLOGY}, map={"type": "object", "additionalProperties": TOPOLOGY}
    )
    filled = schema.defaulted({"spec": {"list": [{}, {"mode": "Required"}], "map": {"a": {}}}})
    assert filled["spec"]["list"] == [{"mode": "Preferred"}, {"mode": "Required"}]
    assert filled["spec"]["map"] == {"a": {"mode": "Preferred"}}


def test_null_stays_where_it_is_allowed_gives_way_to_a_default_and_otherwise_goes():
    text = {"type": "string"}
    schema = widgets(note=text | {"nullable": True, "default": "x"}, policy=text | {"default": "spread"}, name=text)
    filled = schema.defaulted({"spec": {"note": None, "policy": None, "name": None}})
    assert filled == {"spec": {"note": None, "policy": "spread"}}


def test_a_null_that_nobody_describes_stays():
    schema = widgets(free={"type": "object", "x-kubernetes-preserve-unknown-fields": True})
    assert schema.defaulted({"spec": {"free": {"a": None}}}) == {"spec": {"free": {"a": None}}}


def test_a_null_in_a_built_in_kind_reads_as_something_absent():
    document = {"metadata": {"creationTimestamp": None}, "spec": {"containers": [{"name": "a", "env": None}]}}
    assert schema_of(POD).defaulted(document) == {"metadata": {}, "spec": {"containers": [{"name": "a"}]}}


def test_the_given_document_and_the_default_stay_as_they_were():
    schema = widgets(ids={"type": "array", "items": {"type": "integer"}, "default": [1]})
    document = {"spec": {}}
    schema.defaulted(document)["spec"]["ids"].append(2)
    assert document == {"spec": {}}
    assert schema.defaulted(document)["spec"]["ids"] == [1]


def test_a_document_that_needs_nothing_is_not_copied():
    document = {"spec": {"topology": {"mode": "Required"}, "ids": [1, 2]}}
    schema = widgets(topology=TOPOLOGY, ids={"type": "array", "items": {"type": "integer"}})
    assert schema.defaulted(document) is document


names = st.sampled_from(["a", "b", "c"])
plain = st.one_of(st.none(), st.integers(0, 9), st.text("xy", max_size=2))
documents = st.recursive(plain, lambda part: st.dictionaries(names, part) | st.lists(part, max_size=3), max_leaves=15)
leaves = st.fixed_dictionaries(
    {"type": st.just("string")}, optional={"default": st.just("d"), "nullable": st.booleans()}
)
schemas = st.recursive(
    leaves,
    lambda part: st.one_of(
        st.builds(
            lambda fields, more: {"type": "object", "properties": fields} | more,
            st.dictionaries(names, part),
            st.sampled_from([{}, {"default": {}}, {"nullable": True}]),
        ),
        part.map(lambda items: {"type": "array", "items": items}),
    ),
    max_leaves=8,
)


@given(spec=schemas, document=documents)
def test_what_was_filled_once_needs_no_more(spec, document):
    schema = read_definition({"type": "object", "properties": {"spec": spec}})
    filled = schema.defaulted({"spec": document})
    assert schema.defaulted(filled) == filled
