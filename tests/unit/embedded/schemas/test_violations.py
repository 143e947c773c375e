"""What makes an object invalid by its schema, in Kubernetes' words."""

import pytest

from tessera.embedded.schemas import read_definition
from tests.unit.embedded.schemas.samples import POD, schema_of, widgets

TEXT = {"type": "string"}
NUMBER = {"type": "integer"}


@pytest.mark.parametrize(
    ("schema", "value", "reason", "message"),
    [
        (NUMBER, "two", "TypeInvalid", 'Invalid value: "string": spec.x in body must be of type integer: "string"'),
        (NUMBER, True, "TypeInvalid", 'Invalid value: "boolean": spec.x in body must be of type integer: "boolean"'),
        (TEXT, None, "TypeInvalid", 'Invalid value: "null": spec.x in body must be of type string: "null"'),
        (
            NUMBER | {"minimum": 1},
            0,
            "Invalid",
            "Invalid value: 0: spec.x in body should be greater than or equal to 1",
        ),
        (
            NUMBER | {"maximum": 16.0},
            17,
            "Invalid",
            "Invalid value: 17: spec.x in body should be less than or equal to 16",
        ),
        (
            NUMBER | {"minimum": 1, "exclusiveMinimum": True},
            1,
            "Invalid",
            "Invalid value: 1: spec.x in body should be greater than 1",
        ),
        (NUMBER | {"multipleOf": 4}, 6, "Invalid", "Invalid value: 6: spec.x in body should be a multiple of 4"),
        (
            TEXT | {"enum": ["a", "b"]},
            "c",
            "NotSupported",
            'Unsupported value: "c": supported values: "a", "b"',
        ),
        (NUMBER | {"enum": [1, 2]}, 3, "NotSupported", 'Unsupported value: 3: supported values: "1", "2"'),
        (
            TEXT | {"pattern": "^[a-z]+$"},
            "GPU",
            "Invalid",
            "Invalid value: \"GPU\": spec.x in body should match '^[a-z]+$'",
        ),
        (
            TEXT | {"pattern": "^[a-z]+$"},
            "gpu\n",
            "Invalid",
            "Invalid value: \"gpu\\n\": spec.x in body should match '^[a-z]+$'",
        ),
        (TEXT | {"maxLength": 2}, "abc", "TooLong", "Too long: may not be more than 2 bytes"),
        (TEXT | {"minLength": 1}, "", "Invalid", 'Invalid value: "": spec.x in body should be at least 1 chars long'),
        (
            {"type": "array", "items": NUMBER, "maxItems": 1},
            [1, 2],
            "TooMany",
            "Too many: 2: must have at most 1 items",
        ),
        (
            {"type": "array", "items": NUMBER, "minItems": 1},
            [],
            "Invalid",
            "Invalid value: 0: spec.x in body should have at least 1 items",
        ),
        (
            TEXT | {"format": "date-time"},
            "soon",
            "TypeInvalid",
            'Invalid value: "soon": spec.x in body must be of type date-time: "soon"',
        ),
        (
            {"x-kubernetes-int-or-string": True},
            True,
            "TypeInvalid",
            'Invalid value: "boolean": spec.x in body must be of type integer,string: "boolean"',
        ),
    ],
)
def test_a_value_that_breaks_the_schema_is_told_with_path_value_and_rule(schema, value, reason, message):
    (cause,) = widgets(x=schema).violations({"spec": {"x": value}})
    assert (cause.reason, cause.message, cause.field) == (f"FieldValue{reason}", message, "spec.x")


@pytest.mark.parametrize(
    ("schema", "value"),
    [
        (NUMBER | {"minimum": 1, "maximum": 1}, 1),
        (NUMBER, 2.0),
        ({"type": "number"}, 2),
        (TEXT | {"nullable": True}, None),
        (TEXT | {"format": "date-time"}, "2026-01-02T03:04:05Z"),
        (TEXT | {"format": "of nobody"}, "anything"),
        (TEXT | {"pattern": "[[:alpha:]]$"}, "GPU"),
        ({"x-kubernetes-int-or-string": True}, "8000Mi"),
        ({"x-kubernetes-int-or-string": True}, 8000),
    ],
)
def test_a_value_that_keeps_to_the_schema_passes(schema, value):
    assert widgets(x=schema).violations({"spec": {"x": value}}) == []


def test_every_place_has_a_cause_of_its_own():
    item = {"type": "object", "required": ["name"], "properties": {"name": TEXT, "size": NUMBER}}
    schema = widgets(items={"type": "array", "items": item}, sizes={"type": "object", "additionalProperties": NUMBER})
    document = {"spec": {"items": [{}, {"name": "a", "size": "b"}], "sizes": {"large": "x"}}}
    fields = {cause.field: cause.reason for cause in schema.violations(document)}
    assert fields == {
        "spec.items[0].name": "FieldValueRequired",
        "spec.items[1].size": "FieldValueTypeInvalid",
        "spec.sizes.large": "FieldValueTypeInvalid",
    }


def test_two_elements_of_one_key_are_one_too_many():
    item = {"type": "object", "required": ["name"], "properties": {"name": TEXT, "size": NUMBER}}
    keyed = {"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["name"]}
    schema = widgets(keyed={"type": "array", "items": item} | keyed)
    (cause,) = schema.violations({"spec": {"keyed": [{"name": "a", "size": 1}, {"name": "b"}, {"name": "a"}]}})
    assert cause == ("FieldValueDuplicate", 'Duplicate value: {"name":"a"}', "spec.keyed[2]")


def test_a_set_has_each_value_once():
    schema = widgets(tags={"type": "array", "items": TEXT, "x-kubernetes-list-type": "set"})
    (cause,) = schema.violations({"spec": {"tags": ["x", "y", "x"]}})
    assert (cause.reason, cause.field) == ("FieldValueDuplicate", "spec.tags[2]")


def test_alternatives_are_held_to():
    either = {"oneOf": [{"required": ["a"]}, {"required": ["b"]}]}
    schema = read_definition(
        {"type": "object", "properties": {"spec": {"type": "object", "properties": {"a": TEXT, "b": TEXT}} | either}}
    )
    assert schema.violations({"spec": {"a": "1"}}) == []
    (both,) = schema.violations({"spec": {"a": "1", "b": "2"}})
    assert "must validate one and only one schema (oneOf). Found 2 valid alternatives" in both.message
    assert "Found none valid" in schema.violations({"spec": {}})[0].message


def test_number_or_string_can_be_said_twice():
    both = {
        "x-kubernetes-int-or-string": True,
        "anyOf": [{"type": "integer"}, {"type": "string"}],
        "pattern": "^[0-9]+$",
    }
    schema = widgets(size=both)
    assert schema.violations({"spec": {"size": 8}}) == schema.violations({"spec": {"size": "8"}}) == []
    assert schema.violations({"spec": {"size": "large"}})


def test_an_embedded_object_says_what_it_is():
    anything = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    schema = widgets(template=anything | {"x-kubernetes-embedded-resource": True})
    fields = [cause.field for cause in schema.violations({"spec": {"template": {"kind": "Pod"}}})]
    assert fields == ["spec.template.apiVersion"]


def test_a_built_in_kind_says_which_fields_are_required_but_not_in_its_status():
    document = {"spec": {"containers": [{"image": "a"}]}, "status": {"conditions": [{}]}}
    assert schema_of(POD).violations(document) == [("FieldValueRequired", "Required value", "spec.containers[0].name")]
