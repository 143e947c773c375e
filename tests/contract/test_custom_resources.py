"""Custom resources: what their schema demands, adds and takes away, and how the server says so."""

import pytest

from tests.contract.api import JSON_PATCH, MERGE_PATCH
from tests.contract.custom_resources import DEFINITIONS, Widgets, definition, is_established
from tests.contract.refusals import refused
from tests.contract.waiting import eventually

pytestmark = pytest.mark.contract(area="Custom resources", needed_by="operators, GpuClaim, Compute, MPIJob")

DEVICES = {
    "spec": {
        "type": "object",
        "required": ["count"],
        "properties": {
            "count": {"type": "integer", "minimum": 1, "maximum": 16},
            "policy": {"type": "string", "enum": ["contiguous", "spread"], "default": "contiguous"},
            "name": {"type": "string", "pattern": "^[a-z]+$", "maxLength": 8},
            "ids": {"type": "array", "items": {"type": "integer"}, "maxItems": 3},
            "note": {"type": "string", "nullable": True},
            "topology": {
                "type": "object",
                "default": {},
                "properties": {"mode": {"type": "string", "default": "Preferred"}},
            },
        },
    }
}


@pytest.fixture
def devices(serve):
    return serve(schema=DEVICES)


@pytest.mark.contract(
    promise="A definition becomes Established, with its names accepted", needed_by="operators, helm, kubectl"
)
def test_a_definition_becomes_established(api, unique, create_for_now):
    definitions = api.collection(DEFINITIONS)
    name = create_for_now(definitions, definition(f"{unique}.example"))["metadata"]["name"]
    eventually(lambda: is_established(definitions.get(name)))
    status = definitions.get(name)["status"]
    assert status["acceptedNames"]["kind"] == "Widget"
    assert status["storedVersions"] == ["v1"]


@pytest.mark.contract(promise="A definition without a structural schema, or with a wrong name, is 422")
def test_a_wrong_definition_is_refused(api, unique):
    wrong = definition(f"{unique}.example")
    wrong["metadata"]["name"] = "others.example"
    wrong["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"] = {"properties": {}}
    with refused(422, "Invalid") as refusal:
        api.collection(DEFINITIONS).create(wrong)
    fields = {cause["field"] for cause in refusal.value.causes}
    assert "metadata.name" in fields
    assert "spec.validation.openAPIV3Schema.properties[spec].type" in fields


@pytest.mark.contract(promise="Deleting a definition deletes its objects and its paths", needed_by="helm, kubectl")
def test_a_definition_takes_its_objects_along(api, namespace, unique, create_for_now):
    definitions = api.collection(DEFINITIONS)
    wanted = create_for_now(definitions, definition(f"{unique}.example"))
    widgets = Widgets(api, wanted, namespace)
    widgets.wait_until_served()
    widgets.apply("w", widgets.widget("w", {}), manager="test")
    definitions.delete(wanted["metadata"]["name"])
    eventually(lambda: not definitions.exists(wanted["metadata"]["name"]))
    eventually(lambda: api.send("GET", widgets.path).status == 404)
    definitions.create(definition(f"{unique}.example"))
    widgets.wait_until_served()
    assert widgets.names() == []


@pytest.mark.contract(
    promise="A deleted definition is Terminating, and takes nothing new, until its objects' finalizers are gone",
    needed_by="operators, helm, kubectl",
)
def test_a_definition_waits_for_the_finalizers_of_its_objects(api, namespace, unique, create_for_now):
    definitions = api.collection(DEFINITIONS)
    wanted = create_for_now(definitions, definition(f"{unique}.example"))
    name, widgets = wanted["metadata"]["name"], Widgets(api, wanted, namespace)
    widgets.wait_until_served()
    widgets.apply("free", widgets.widget("free", {}), manager="test")
    widgets.create(widgets.widget("held", {}, finalizers=["test.example/hold"]))
    definitions.delete(name)
    eventually(lambda: widgets.names() == ["held"])
    assert "deletionTimestamp" in widgets.get("held")["metadata"]
    conditions = {one["type"]: one["status"] for one in definitions.get(name)["status"]["conditions"]}
    assert conditions["Terminating"] == "True"
    with refused(403, "Forbidden"):
        widgets.create(widgets.widget("late", {}))
    widgets.patch("held", MERGE_PATCH, {"metadata": {"finalizers": None}})
    eventually(lambda: not definitions.exists(name))
    eventually(lambda: api.send("GET", widgets.path).status == 404)


@pytest.mark.contract(
    promise="What breaks the schema is 422 with path, value and rule: range, enum, pattern, size, type"
)
@pytest.mark.parametrize(
    ("spec", "field", "complaint"),
    [
        ({}, "spec.count", "Required value"),
        ({"count": 0}, "spec.count", "spec.count in body should be greater than or equal to 1"),
        ({"count": 17}, "spec.count", "spec.count in body should be less than or equal to 16"),
        ({"count": "two"}, "spec.count", 'spec.count in body must be of type integer: "string"'),
        (
            {"count": 1, "policy": "any"},
            "spec.policy",
            'Unsupported value: "any": supported values: "contiguous", "spread"',
        ),
        ({"count": 1, "name": "GPU"}, "spec.name", "spec.name in body should match '^[a-z]+$'"),
        ({"count": 1, "name": "abcdefghi"}, "spec.name", "Too long: may not be more than 8 bytes"),
        ({"count": 1, "ids": [1, 2, 3, 4]}, "spec.ids", "Too many: 4: must have at most 3 items"),
    ],
    ids=lambda value: str(value) if isinstance(value, dict) else "",
)
def test_the_schema_is_enforced(devices, spec, field, complaint):
    with refused(422, "Invalid") as refusal:
        devices.create(devices.widget("w", spec))
    causes = {cause["field"]: cause["message"] for cause in refusal.value.causes}
    assert complaint in causes[field]
    assert refusal.value.message.startswith(f'Widget.{devices.group} "w" is invalid: ')


@pytest.mark.contract(promise="A patch is held to the schema as well")
def test_a_patch_that_breaks_the_schema_is_refused(devices):
    devices.create(devices.widget("w", {"count": 1}))
    with refused(422, "Invalid"):
        devices.patch("w", MERGE_PATCH, {"spec": {"count": 0}})
    assert devices.get("w")["spec"]["count"] == 1


@pytest.mark.contract(promise="Defaults are filled in, in nested objects that have a default too")
def test_defaults_are_filled_in(devices):
    created = devices.create(devices.widget("w", {"count": 1}))
    assert created["spec"] == {"count": 1, "policy": "contiguous", "topology": {"mode": "Preferred"}}


@pytest.mark.contract(promise="null stays where it is allowed, gives way to a default, and otherwise is dropped")
def test_null_is_kept_only_where_it_is_allowed(devices):
    created = devices.create(devices.widget("w", {"count": 1, "note": None, "policy": None, "name": None}))
    assert created["spec"]["note"] is None
    assert created["spec"]["policy"] == "contiguous"
    assert "name" not in created["spec"]


@pytest.mark.contract(promise="Fields that the schema does not know are dropped with a warning")
def test_unknown_fields_are_pruned(api, devices):
    answer = api.send("POST", devices.path, devices.widget("w", {"count": 1, "colour": "red"}))
    assert "colour" not in answer.body["spec"]
    assert 'unknown field \\"spec.colour\\"' in answer.headers["Warning"]


@pytest.mark.contract(promise="With fieldValidation=Strict an unknown field is 400", needed_by="kubectl")
def test_unknown_fields_are_refused_where_asked(devices):
    with refused(400, "BadRequest") as refusal:
        devices.create(devices.widget("w", {"count": 1, "colour": "red"}), fieldValidation="Strict")
    assert 'strict decoding error: unknown field "spec.colour"' in refusal.value.message


@pytest.mark.contract(promise="x-kubernetes-preserve-unknown-fields keeps everything", needed_by="operators, MPIJob")
def test_unknown_fields_are_kept_where_allowed(widgets):
    anything = {"deep": {"list": [1, {"a": None}], "number": 1.5}}
    assert widgets.create(widgets.widget("w", anything))["spec"] == anything


@pytest.mark.contract(promise="x-kubernetes-int-or-string takes both")
def test_a_field_can_be_number_or_string(serve):
    either = {"type": "object", "properties": {"size": {"x-kubernetes-int-or-string": True}}}
    widgets = serve(schema={"spec": either})
    for number, size in enumerate([8000, "8000Mi"]):
        assert widgets.create(widgets.widget(f"w{number}", {"size": size}))["spec"]["size"] == size
    with refused(422, "Invalid"):
        widgets.create(widgets.widget("w", {"size": True}))


@pytest.mark.contract(promise="A changed definition holds from the next write on", needed_by="helm, operators")
def test_a_definition_can_be_changed(api, namespace, unique, create_for_now):
    definitions = api.collection(DEFINITIONS)
    wanted = create_for_now(definitions, definition(f"{unique}.example", DEVICES))
    widgets = Widgets(api, wanted, namespace)
    widgets.wait_until_served()
    widgets.apply("w", widgets.widget("w", {"count": 16}), manager="test")
    path = "/spec/versions/0/schema/openAPIV3Schema/properties/spec/properties/count/maximum"
    definitions.patch(wanted["metadata"]["name"], JSON_PATCH, [{"op": "replace", "path": path, "value": 32}])
    more = {"path": f"{widgets.path}/w", "body": {"spec": {"count": 32}}, "headers": {"Content-Type": MERGE_PATCH}}
    eventually(lambda: api.send("PATCH", **more).status == 200)


@pytest.mark.contract(promise="A cluster-scoped custom resource lives outside namespaces", needed_by="node, GpuClaim")
def test_a_custom_resource_can_be_cluster_wide(serve, unique):
    widgets = serve(scope="Cluster")
    assert "namespace" not in widgets.create(widgets.widget(unique, {}))["metadata"]
    assert unique in widgets.names()
