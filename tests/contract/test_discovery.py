"""What a client learns of a server before it uses it: health, version, resources, schemas, tables."""

import pytest

from tests.contract.api import Object
from tests.contract.custom_resources import openapi_index
from tests.contract.objects import pod

pytestmark = pytest.mark.contract(area="Discovery", needed_by="kubectl, Python client, kube")

AGGREGATED = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"
TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io,application/json"
NAMES = {"plural": "widgets", "singular": "widget", "kind": "Widget", "shortNames": ["wdg"], "categories": ["contract"]}


def resources_of(listing: Object) -> dict[str, Object]:
    return {resource["name"]: resource for resource in listing["resources"]}


@pytest.mark.contract(
    promise="/healthz, /livez and /readyz say ok, to those who may do nothing else too", needed_by="everything"
)
@pytest.mark.parametrize("path", ["/healthz", "/livez", "/readyz"])
def test_a_healthy_server_says_ok(api_as, path):
    nobody = api_as("nobody-in-particular")
    answer = nobody.send("GET", path)
    assert (answer.status, answer.body) == (200, "ok")


@pytest.mark.contract(promise="/version says the version that is served")
def test_the_version_is_told(api):
    version = api.get("/version")
    assert version["gitVersion"].startswith(f"v{version['major']}.{version['minor']}")


@pytest.mark.contract(promise="/api and /apis list versions and groups with the preferred version")
def test_the_groups_are_listed(api):
    assert api.get("/api")["versions"] == ["v1"]
    groups = {group["name"]: group["preferredVersion"]["version"] for group in api.get("/apis")["groups"]}
    for group in (
        "apps",
        "batch",
        "coordination.k8s.io",
        "policy",
        "rbac.authorization.k8s.io",
        "apiextensions.k8s.io",
    ):
        assert groups[group] == "v1"


@pytest.mark.contract(promise="/api/v1 lists resources with kind, scope, verbs, short names and subresources")
def test_the_resources_of_a_version_are_listed(api):
    resources = resources_of(api.get("/api/v1"))
    assert (resources["pods"]["kind"], resources["pods"]["namespaced"]) == ("Pod", True)
    assert resources["pods"]["shortNames"] == ["po"]
    assert "all" in resources["pods"]["categories"]
    verbs = {"create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"}
    assert set(resources["pods"]["verbs"]) == verbs
    assert resources["nodes"]["namespaced"] is False
    for name in ("binding", "eviction", "exec", "log", "portforward", "proxy", "status"):
        assert f"pods/{name}" in resources
    assert resources["pods/eviction"]["group"] == "policy"


@pytest.mark.contract(promise="One request for /apis in the aggregated form tells everything", needed_by="kubectl")
def test_discovery_can_be_had_in_one_piece(api):
    answer = api.send("GET", "/apis", headers={"Accept": AGGREGATED})
    assert answer.body["kind"] == "APIGroupDiscoveryList"
    groups = {group["metadata"]["name"]: group["versions"][0] for group in answer.body["items"]}
    deployments = next(entry for entry in groups["apps"]["resources"] if entry["resource"] == "deployments")
    assert deployments["scope"] == "Namespaced"
    assert deployments["responseKind"]["kind"] == "Deployment"
    assert {entry["subresource"] for entry in deployments["subresources"]} == {"scale", "status"}
    core = api.send("GET", "/api", headers={"Accept": AGGREGATED}).body["items"][0]
    assert {"pods", "nodes", "configmaps"} <= {entry["resource"] for entry in core["versions"][0]["resources"]}


@pytest.mark.contract(
    promise="A custom resource is discovered with short names, categories and subresources",
    needed_by="kubectl, GpuClaim",
)
def test_a_custom_resource_is_discovered(api, serve):
    widgets = serve(names=NAMES, subresources={"status": {}})
    resources = resources_of(api.get(f"/apis/{widgets.group}/v1"))
    assert resources["widgets"]["shortNames"] == ["wdg"]
    assert resources["widgets"]["categories"] == ["contract"]
    assert "widgets/status" in resources


@pytest.mark.contract(
    promise="OpenAPI v3: an index of groups, and for each the schemas of its kinds", needed_by="kubectl, Python client"
)
def test_schemas_are_published_by_group(api, serve):
    spec = {"type": "object", "description": "What is wanted", "properties": {"count": {"type": "integer"}}}
    widgets = serve(schema={"spec": spec})
    schemas = openapi_schemas(api, f"apis/{widgets.group}/v1")
    widget = next(schema for name, schema in schemas.items() if name.endswith(".Widget"))
    assert widget["properties"]["spec"]["properties"]["count"]["type"] == "integer"
    assert widget["x-kubernetes-group-version-kind"] == [{"group": widgets.group, "version": "v1", "kind": "Widget"}]
    assert "io.k8s.api.core.v1.Pod" in openapi_schemas(api, "api/v1")


def openapi_schemas(api, group_version):
    return api.get(openapi_index(api)[group_version]["serverRelativeURL"])["components"]["schemas"]


@pytest.mark.contract(promise="A list can be had as a Table with columns and cells", needed_by="kubectl")
def test_a_list_can_be_had_as_a_table(api, pods):
    pods.create(pod("worker"))
    table = api.send("GET", pods.path, headers={"Accept": TABLE}).body
    assert (table["kind"], table["apiVersion"]) == ("Table", "meta.k8s.io/v1")
    names = [column["name"] for column in table["columnDefinitions"]]
    assert names[:5] == ["Name", "Ready", "Status", "Restarts", "Age"]
    assert table["rows"][0]["cells"][:4] == ["worker", "0/1", "Pending", "0"]
    assert table["rows"][0]["object"]["kind"] == "PartialObjectMetadata"


@pytest.mark.contract(
    promise="Printer columns of a custom resource are the columns of its Table", needed_by="kubectl, GpuClaim"
)
def test_printer_columns_make_a_table(api, serve):
    columns = [
        {"name": "Count", "type": "integer", "jsonPath": ".spec.count"},
        {"name": "Owner", "type": "string", "jsonPath": ".metadata.labels.owner", "priority": 1},
        {"name": "Age", "type": "date", "jsonPath": ".metadata.creationTimestamp"},
    ]
    widgets = serve(additionalPrinterColumns=columns)
    widgets.apply("w", widgets.widget("w", {"count": 2}), manager="test")
    table = api.send("GET", widgets.path, headers={"Accept": TABLE}).body
    assert [column["name"] for column in table["columnDefinitions"]] == ["Name", "Count", "Owner", "Age"]
    assert [column["priority"] for column in table["columnDefinitions"]] == [0, 0, 1, 0]
    assert table["rows"][0]["cells"][:3] == ["w", 2, None]
    assert table["rows"][0]["cells"][3].endswith("s")


@pytest.mark.contract(promise="Only the metadata of a list can be asked for", needed_by="kube")
def test_a_list_of_metadata_is_lighter(api, pods):
    pods.create(pod("worker"))
    accept = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1"
    listing = api.send("GET", pods.path, headers={"Accept": accept}).body
    assert listing["kind"] == "PartialObjectMetadataList"
    assert listing["items"][0]["metadata"]["name"] == "worker"
    assert "spec" not in listing["items"][0]
