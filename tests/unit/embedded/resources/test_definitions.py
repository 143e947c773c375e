"""CustomResourceDefinitions, and what is served because of them."""

import copy

import pytest

from tessera.embedded.resources import Registry
from tests.unit.embedded.resources.making import (
    ANYTHING,
    NOW,
    complaints,
    created,
    definition,
    refusals,
    served,
    updated,
    with_status,
)

DEFINITIONS = served("customresourcedefinitions", "apiextensions.k8s.io")


def changed(change, **version):
    wrong = definition(**version)
    change(wrong["spec"], wrong["metadata"])
    return wrong


def serve(**version):
    """The kind that a definition with these version fields adds."""
    registry = Registry([created(DEFINITIONS, definition(**version))])
    found = registry.find("lab.example", "v1", "widgets")
    assert found is not None
    return found


def widget(**fields):
    return {"metadata": {"name": "w"}} | fields


def test_a_definition_is_in_force_at_once():
    status = created(DEFINITIONS, definition())["status"]
    assert {entry["type"]: entry["status"] for entry in status["conditions"]} == {
        "NamesAccepted": "True",
        "Established": "True",
    }
    assert status["conditions"][0]["lastTransitionTime"] == NOW
    assert status["acceptedNames"] == {
        "plural": "widgets",
        "kind": "Widget",
        "singular": "widget",
        "listKind": "WidgetList",
        "shortNames": ["wdg"],
    }
    assert status["storedVersions"] == ["v1"]


def test_names_that_are_left_out_are_made_from_the_kind():
    names = created(DEFINITIONS, definition())["spec"]["names"]
    assert (names["singular"], names["listKind"]) == ("widget", "WidgetList")


@pytest.mark.parametrize(
    ("change", "field", "message"),
    [
        (
            lambda _, metadata: metadata.update(name="others.example"),
            "metadata.name",
            'Invalid value: "others.example": must be spec.names.plural+"."+spec.group',
        ),
        (lambda spec, _: spec.pop("scope"), "spec.scope", "Required value"),
        (
            lambda spec, _: spec.update(scope="X"),
            "spec.scope",
            'Unsupported value: "X": supported values: "Cluster", "Namespaced"',
        ),
        (lambda spec, _: spec["names"].pop("kind"), "spec.names.kind", "Required value"),
        (
            lambda spec, _: spec["versions"][0].update(storage=False),
            "spec.versions",
            'Invalid value: ["v1"]: must have exactly one version marked as storage version',
        ),
        (
            lambda spec, _: spec["versions"][0].pop("schema"),
            "spec.versions[0].schema.openAPIV3Schema",
            "Required value",
        ),
        (
            lambda spec, metadata: (spec.update(group="alone"), metadata.update(name="widgets.alone")),
            "spec.group",
            'Invalid value: "alone": should be a domain with at least one dot',
        ),
        (
            lambda spec, _: spec.update(preserveUnknownFields=True),
            "spec.preserveUnknownFields",
            "Invalid value: true: cannot set to true, set x-kubernetes-preserve-unknown-fields to true in "
            "spec.versions[*].schema instead",
        ),
    ],
)
def test_a_wrong_definition_is_refused(change, field, message):
    assert complaints(DEFINITIONS, changed(change))[field] == message


def test_the_schema_must_be_structural():
    loose = {"openAPIV3Schema": {"type": "object", "properties": {"spec": {"properties": {}}}}}
    told = complaints(DEFINITIONS, definition(schema=loose))
    assert "spec.validation.openAPIV3Schema.properties[spec].type" in told


def test_with_several_versions_the_one_with_the_wrong_schema_is_named():
    loose = {"openAPIV3Schema": {"type": "object", "properties": {"spec": {"properties": {}}}}}
    other = {"name": "v2", "served": True, "storage": False, "schema": loose}
    told = complaints(DEFINITIONS, changed(lambda spec, _: spec["versions"].append(other)))
    assert "spec.versions[1].schema.openAPIV3Schema.properties[spec].type" in told


def test_a_rule_that_does_not_compile_is_refused_with_its_definition():
    broken = {"type": "object", "x-kubernetes-validations": [{"rule": "self.absent > 1"}]}
    schema = {"openAPIV3Schema": {"type": "object", "properties": {"spec": broken}}}
    assert any(
        "compilation failed" in message for message in complaints(DEFINITIONS, definition(schema=schema)).values()
    )


def test_columns_and_scales_lead_somewhere():
    columns = [{"name": "", "type": "x", "jsonPath": "spec"}]
    told = complaints(DEFINITIONS, definition(additionalPrinterColumns=columns))
    assert told == {
        "spec.additionalPrinterColumns[0].name": "Required value",
        "spec.additionalPrinterColumns[0].type": (
            'Invalid value: "x": must be one of boolean,date,integer,number,string'
        ),
        "spec.additionalPrinterColumns[0].JSONPath": (
            'Invalid value: "spec": must be a simple json path starting with .'
        ),
    }
    scale = {"specReplicasPath": ".foo", "statusReplicasPath": ""}
    told = complaints(DEFINITIONS, definition(subresources={"scale": scale}))
    assert told["spec.subresources.scale.specReplicasPath"].endswith("should be a json path under .spec")
    assert told["spec.subresources.scale.statusReplicasPath"] == "Required value"


@pytest.mark.parametrize("field", ["scope", "group"])
def test_where_the_objects_live_is_fixed(field):
    made = created(DEFINITIONS, definition())
    value = {"scope": "Cluster", "group": "other.example"}[field]
    told = refusals(DEFINITIONS, made, spec=made["spec"] | {field: value})
    assert told[f"spec.{field}"] == f'Invalid value: "{value}": field is immutable'


def test_a_version_that_was_stored_stays():
    made = created(DEFINITIONS, definition())
    spec = copy.deepcopy(made["spec"])
    spec["versions"][0]["name"] = "v2"
    assert updated(DEFINITIONS, made, spec=spec)["status"]["storedVersions"] == ["v1", "v2"]
    told = refusals(DEFINITIONS, made, spec=spec)
    assert told["status.storedVersions[0]"].startswith('Invalid value: "v1": missing from spec.versions; v1 was')


def test_a_definition_adds_a_kind_until_it_is_forgotten():
    registry = Registry()
    assert registry.find("lab.example", "v1", "widgets") is None
    registry.define(created(DEFINITIONS, definition(subresources={"status": {}})))
    found = registry.find("lab.example", "v1", "widgets")
    assert found is not None
    assert found.is_custom
    assert (found.kind.short_names, found.kind.subresources) == (("wdg",), ("status",))
    assert found in list(registry.all())
    registry.forget("widgets.lab.example")
    assert registry.find("lab.example", "v1", "widgets") is None


def test_the_best_version_comes_first_and_those_not_served_are_not_there():
    def version(name, *, is_served=True):
        schema = {"openAPIV3Schema": {"type": "object"}}
        return {"name": name, "served": is_served, "storage": name == "v1", "schema": schema}

    versions = [version("v1alpha1"), version("v1"), version("v2", is_served=False), version("v1beta2"), version("v10")]
    made = created(DEFINITIONS, changed(lambda spec, _: spec.update(versions=versions)))
    kinds = [one.kind.version for one in Registry([made]).all() if one.is_custom]
    assert kinds == ["v10", "v1", "v1beta2", "v1alpha1"]


def test_a_custom_resource_is_filled_in_and_held_to_its_schema():
    count = {"type": "integer", "minimum": 1, "default": 2}
    spec = {"type": "object", "default": {}, "properties": {"count": count}}
    kind = serve(schema={"openAPIV3Schema": {"type": "object", "properties": {"spec": spec}}})
    assert created(kind, widget())["spec"] == {"count": 2}
    told = complaints(kind, widget(spec={"count": 0}))["spec.count"]
    assert "should be greater than or equal to 1" in told


def test_a_rule_holds_for_changes_too():
    fixed = [{"rule": "self == oldSelf", "message": "node is fixed"}]
    spec = {"type": "object", "properties": {"node": {"type": "string", "x-kubernetes-validations": fixed}}}
    kind = serve(schema={"openAPIV3Schema": {"type": "object", "properties": {"spec": spec}}})
    made = created(kind, widget(spec={"node": "a"}))
    assert refusals(kind, made, spec={"node": "a"}) == {}
    assert "node is fixed" in refusals(kind, made, spec={"node": "b"})["spec.node"]


def test_status_has_a_door_of_its_own_where_it_is_declared():
    kind = serve(subresources={"status": {}})
    made = created(kind, widget(spec={"size": 1}, status={"phase": "Bound"}))
    assert "status" not in made
    again = updated(kind, made, spec={"size": 2}, status={"phase": "Bound"})
    assert "status" not in again
    assert again["metadata"]["generation"] == 2
    meta = again["metadata"] | {"labels": {"a": "b"}}
    observed = with_status(kind, again, spec={"size": 3}, status={"phase": "Bound"}, metadata=meta)
    assert (observed["spec"], observed["status"]) == ({"size": 2}, {"phase": "Bound"})
    assert (observed["metadata"]["generation"], observed["metadata"].get("labels")) == (2, None)


def test_without_the_door_the_status_is_like_any_other_field():
    kind = serve()
    made = created(kind, widget(status={"phase": "Bound"}))
    assert made["status"] == {"phase": "Bound"}
    assert updated(kind, made, status={"phase": "Lost"})["metadata"]["generation"] == 2


def test_a_definition_of_something_cluster_wide_makes_objects_without_namespace():
    made = created(DEFINITIONS, changed(lambda spec, _: spec.update(scope="Cluster")))
    found = Registry([made]).find("lab.example", "v1", "widgets")
    assert found is not None
    assert not found.kind.is_namespaced
    assert "namespace" not in created(found, widget(spec=ANYTHING))["metadata"]
