"""Whether the schema of a definition is structural."""

import pytest

from tessera.embedded.schemas import NotStructural, read_definition

AT = "spec.validation.openAPIV3Schema"
TEXT = {"type": "string"}
KEYED = {"type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["name"]}


def causes_of(spec):
    with pytest.raises(NotStructural) as refusal:
        read_definition({"type": "object", "properties": {"spec": spec}})
    return {cause.field: cause.message for cause in refusal.value.causes}


@pytest.mark.parametrize(
    ("spec", "field", "message"),
    [
        ({"properties": {}}, "type", "Required value: must not be empty for specified object fields"),
        ({"type": "array", "items": {}}, "items.type", "Required value: must not be empty for specified array items"),
        ({"type": "array"}, "items", "Required value: must be specified"),
        ({"type": "text"}, "type", 'Unsupported value: "text"'),
        (
            KEYED | {"items": {"type": "object", "properties": {}}},
            "x-kubernetes-list-map-keys",
            "entries must all be names of item properties",
        ),
        ({"type": "string", "pattern": "("}, "pattern", "must be a valid regular expression, but isn't"),
        (
            {"type": "object", "anyOf": [{"properties": {"a": TEXT}}]},
            "anyOf[0].properties[a].type",
            "Forbidden: must be empty to be structural",
        ),
        ({"type": "string", "not": {"default": "a"}}, "not.default", "Forbidden: must be undefined to be structural"),
        (
            {"type": "object", "properties": {"a": TEXT}, "additionalProperties": TEXT},
            "additionalProperties",
            "mutual exclusive",
        ),
        (
            KEYED | {"items": {"type": "object", "properties": {"name": TEXT}}},
            "items.properties[name].default",
            "must have a default or be a required property",
        ),
        (
            {"type": "object", "properties": {"a": {"type": "integer", "default": "one"}}},
            "properties[a].default",
            "must be of type integer",
        ),
        ({"$ref": "#/definitions/a", "type": "object"}, "$ref", "not supported"),
        ({"type": "array", "items": TEXT, "uniqueItems": True}, "uniqueItems", "Forbidden: uniqueItems"),
        ({"type": "object", "additionalProperties": False}, "additionalProperties", "cannot be set to false"),
        ({"type": "object", "x-kubernetes-list-type": "set"}, "type", "must be array if x-kubernetes-list-type"),
        (
            {"type": "array", "items": {"type": "object", "required": 5}},
            "items.required",
            "cannot unmarshal number into Go struct field JSONSchemaProps.required of type []string",
        ),
        ({"type": "array", "items": [TEXT]}, "items.", "cannot unmarshal array"),
    ],
)
def test_what_is_not_structural_is_told_where_it_is(spec, field, message):
    causes = causes_of(spec)
    assert message in causes[f"{AT}.properties[spec].{field}"]


def test_everything_that_is_wrong_is_told_at_once():
    wrong = {"type": "object", "properties": {"a": {}, "b": {"type": "array"}}}
    assert set(causes_of(wrong)) == {
        f"{AT}.properties[spec].properties[a].type",
        f"{AT}.properties[spec].properties[b].items",
    }


def test_the_root_is_an_object():
    with pytest.raises(NotStructural) as refusal:
        read_definition({"type": "string"}, at="spec.versions[1].schema.openAPIV3Schema")
    (cause,) = refusal.value.causes
    assert cause.field == "spec.versions[1].schema.openAPIV3Schema.type"
    assert "must be object at the root" in cause.message


def test_a_structural_schema_is_taken_as_it_is():
    spec = {
        "type": "object",
        "properties": {
            "size": {"x-kubernetes-int-or-string": True, "anyOf": [{"type": "integer"}, {"type": "string"}]},
            "free": {"x-kubernetes-preserve-unknown-fields": True},
            "keyed": KEYED | {"items": {"type": "object", "required": ["name"], "properties": {"name": TEXT}}},
        },
        "anyOf": [{"required": ["size"]}, {"required": ["free"]}],
    }
    schema = read_definition({"type": "object", "properties": {"spec": spec}})
    assert schema.raw["properties"]["spec"] == spec
    assert schema.is_custom
