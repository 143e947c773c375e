"""The OpenAPI documents that kubectl reads."""

import json

from tessera.embedded.schemas import openapi_of, read_definition
from tests.unit.embedded.schemas.samples import DEFINITION, DEPLOYMENT, NODE, POD, WIDGET, schema_of

WIDGETS = read_definition(
    {
        "type": "object",
        "properties": {
            "spec": {
                "type": "object",
                "description": "What is wanted",
                "properties": {"count": {"type": "integer", "description": "Number of GPUs needed"}},
            }
        },
    }
)


def core():
    return openapi_of("", "v1", [(POD, schema_of(POD)), (NODE, schema_of(NODE))])


def test_a_kind_is_found_by_its_group_version_and_kind():
    pod = core()["components"]["schemas"]["io.k8s.api.core.v1.Pod"]
    assert pod["x-kubernetes-group-version-kind"] == [{"group": "", "version": "v1", "kind": "Pod"}]


def test_every_reference_leads_somewhere():
    document = openapi_of("apps", "v1", [(DEPLOYMENT, schema_of(DEPLOYMENT))])
    schemas = document["components"]["schemas"]
    referred = {part.split('"')[0] for part in json.dumps(document).split("#/components/schemas/")[1:]}
    assert "io.k8s.api.core.v1.Container" in referred
    assert referred <= set(schemas)


def test_a_field_that_is_called_like_a_reference_is_none():
    schemas = openapi_of(DEFINITION.group, "v1", [(DEFINITION, schema_of(DEFINITION))])["components"]["schemas"]
    schema_of_schemas = next(schema for name, schema in schemas.items() if name.endswith(".JSONSchemaProps"))
    assert schema_of_schemas["properties"]["$ref"]["type"] == "string"


def test_descriptions_and_merge_keys_are_shown():
    spec = core()["components"]["schemas"]["io.k8s.api.core.v1.PodSpec"]
    containers = spec["properties"]["containers"]
    assert "containers belonging to the pod" in containers["description"]
    assert (containers["x-kubernetes-patch-merge-key"], containers["x-kubernetes-patch-strategy"]) == ("name", "merge")
    assert spec["required"] == ["containers"]


def test_nothing_stands_beside_a_reference():
    schemas = openapi_of("apps", "v1", [(DEPLOYMENT, schema_of(DEPLOYMENT))])["components"]["schemas"]
    fields = schemas["io.k8s.api.apps.v1.DeploymentSpec"]["properties"]
    strategy = fields["strategy"]
    assert strategy["allOf"] == [{"$ref": "#/components/schemas/io.k8s.api.apps.v1.DeploymentStrategy"}]
    assert strategy["x-kubernetes-patch-strategy"] == "retainKeys"
    assert all(set(field) == {"$ref"} for field in fields.values() if "$ref" in field)


def test_a_custom_resource_is_shown_as_its_definition_says():
    document = openapi_of(WIDGET.group, "v1", [(WIDGET, WIDGETS)])
    widget = document["components"]["schemas"]["example.contract.v1.Widget"]
    assert widget["properties"]["spec"]["properties"]["count"]["description"] == "Number of GPUs needed"
    assert widget["x-kubernetes-group-version-kind"] == [{"group": WIDGET.group, "version": "v1", "kind": "Widget"}]
    assert "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta" in document["components"]["schemas"]


def test_a_resource_is_found_by_its_path():
    paths = core()["paths"]
    pods = paths["/api/v1/namespaces/{namespace}/pods"]["get"]
    assert pods["x-kubernetes-group-version-kind"] == {"group": "", "version": "v1", "kind": "Pod"}
    assert "/api/v1/nodes/{name}" in paths
    assert (
        "/apis/contract.example/v1/namespaces/{namespace}/widgets"
        in openapi_of(WIDGET.group, "v1", [(WIDGET, WIDGETS)])["paths"]
    )


def test_a_patch_says_what_it_takes_and_that_it_is_validated():
    patch = core()["paths"]["/api/v1/namespaces/{namespace}/pods/{name}"]["patch"]
    assert "fieldValidation" in {parameter["name"] for parameter in patch["parameters"]}
    assert "application/strategic-merge-patch+json" in patch["requestBody"]["content"]
    custom = openapi_of(WIDGET.group, "v1", [(WIDGET, WIDGETS)])["paths"]
    one = custom["/apis/contract.example/v1/namespaces/{namespace}/widgets/{name}"]
    assert "application/strategic-merge-patch+json" not in one["patch"]["requestBody"]["content"]
