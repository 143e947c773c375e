"""Fields that nobody knows: how they are named, and that they go."""

from hypothesis import given
from hypothesis import strategies as st

from tessera.embedded.schemas import read_definition
from tests.unit.embedded.schemas.samples import POD, schema_of, widgets

ANYTHING = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}


def test_an_unknown_field_is_named_by_its_path():
    document = {
        "kind": "Pod",
        "metadata": {"name": "w", "colour": "red"},
        "spec": {"colour": "red", "containers": [{"name": "a"}, {"name": "b", "env": [{"nom": "x"}]}]},
    }
    assert schema_of(POD).unknown_fields(document) == [
        "metadata.colour",
        "spec.colour",
        "spec.containers[1].env[0].nom",
    ]


def test_keys_that_users_choose_are_known():
    document = {"metadata": {"labels": {"a/b": "c"}}, "spec": {"nodeSelector": {"gpu": "on"}}}
    assert schema_of(POD).unknown_fields(document) == []


def test_unknown_fields_are_left_out_and_the_given_document_stays():
    document = {"spec": {"colour": "red", "containers": [{"name": "a", "size": 1}]}}
    assert schema_of(POD).pruned(document) == {"spec": {"containers": [{"name": "a"}]}}
    assert document == {"spec": {"colour": "red", "containers": [{"name": "a", "size": 1}]}}


def test_a_document_without_unknown_fields_is_not_copied():
    document = {"spec": {"containers": [{"name": "a"}]}}
    assert schema_of(POD).pruned(document) is document


def test_every_object_has_metadata_that_its_definition_need_not_mention():
    widget = {"apiVersion": "contract.example/v1", "kind": "Widget", "metadata": {"name": "w", "colour": "red"}}
    assert widgets().unknown_fields(widget) == ["metadata.colour"]


def test_everything_is_kept_where_the_schema_says_so():
    schema = widgets(free=ANYTHING, bound={"type": "object"})
    document = {"spec": {"free": {"deep": {"list": [1, {"a": None}]}}, "bound": {"a": 1}}}
    assert schema.unknown_fields(document) == ["spec.bound.a"]
    assert schema.pruned(document) == {"spec": {"free": {"deep": {"list": [1, {"a": None}]}}, "bound": {}}}


def test_what_is_declared_inside_of_what_keeps_everything_is_still_pruned():
    inner = {"type": "object", "properties": {"known": {"type": "string"}}}
    schema = widgets(free=ANYTHING | {"properties": {"inner": inner}})
    document = {"spec": {"free": {"inner": {"known": "a", "other": "b"}, "more": 1}}}
    assert schema.pruned(document) == {"spec": {"free": {"inner": {"known": "a"}, "more": 1}}}


def test_an_embedded_object_has_metadata_too():
    schema = widgets(template={"type": "object", "x-kubernetes-embedded-resource": True, "properties": {}} | ANYTHING)
    document = {"spec": {"template": {"kind": "Pod", "metadata": {"name": "a", "colour": "red"}}}}
    assert schema.unknown_fields(document) == ["spec.template.metadata.colour"]


names = st.sampled_from(["a", "b", "c", "d"])
plain = st.one_of(st.integers(0, 9), st.text("xy", max_size=2), st.booleans())
documents = st.recursive(plain, lambda part: st.dictionaries(names, part) | st.lists(part, max_size=3), max_leaves=20)
schemas = st.recursive(
    st.sampled_from([{"type": "integer"}, {"type": "string"}, ANYTHING, {"type": "object"}]),
    lambda part: st.one_of(
        st.dictionaries(names, part).map(lambda fields: {"type": "object", "properties": fields}),
        part.map(lambda items: {"type": "array", "items": items}),
        part.map(lambda rest: {"type": "object", "additionalProperties": rest}),
    ),
    max_leaves=8,
)


@given(spec=schemas, document=documents)
def test_nothing_unknown_is_left_after_pruning_and_nothing_else_goes(spec, document):
    schema = read_definition({"type": "object", "properties": {"spec": spec}})
    pruned = schema.pruned({"spec": document})
    assert schema.unknown_fields(pruned) == []
    assert schema.pruned(pruned) is pruned
    if not schema.unknown_fields({"spec": document}):
        assert pruned == {"spec": document}
