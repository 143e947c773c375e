"""What goes with its owner or its namespace, and what every namespace has."""

import pytest

from tests.contract.api import MERGE_PATCH
from tests.contract.custom_resources import DEFINITIONS, definition, is_established
from tests.contract.objects import config_map, owned_by
from tests.contract.waiting import eventually
from tests.embedded.controllers.workloads import workload

GROUP = "controllers.example"
HOLD = "test.example/hold"


@pytest.fixture
def widgets(api, of):
    definitions = api.collection(DEFINITIONS)
    if not definitions.exists(f"widgets.{GROUP}"):
        definitions.create(definition(GROUP))
        eventually(lambda: is_established(definitions.get(f"widgets.{GROUP}")))
    return of(f"{GROUP}/v1/widgets")


@pytest.fixture
def config_maps(of):
    return of("configmaps")


def widget(name, **metadata):
    return {"apiVersion": f"{GROUP}/v1", "kind": "Widget", "metadata": {"name": name} | metadata, "spec": {}}


def test_what_a_custom_resource_owns_goes_with_it(widgets, config_maps):
    owner = eventually(lambda: widgets.create(widget("owner")))
    config_maps.create(config_map("owned", ownerReferences=owned_by(owner)))
    widgets.delete("owner")
    eventually(lambda: not config_maps.exists("owned"))


def test_a_kind_whose_definition_goes_takes_what_it_owns_along(api, of, config_maps):
    definitions, group = api.collection(DEFINITIONS), "brief.example"
    definitions.create(definition(group))
    eventually(lambda: is_established(definitions.get(f"widgets.{group}")))
    brief = of(f"{group}/v1/widgets")
    owner = brief.create(widget("owner") | {"apiVersion": f"{group}/v1"})
    config_maps.create(config_map("owned", ownerReferences=owned_by(owner)))
    definitions.delete(f"widgets.{group}")
    eventually(lambda: not config_maps.exists("owned"))


def test_a_whole_tree_deleted_in_the_foreground_goes_from_its_leaves(of, pods):
    deployments, sets = of("apps/v1/deployments"), of("apps/v1/replicasets")
    deployments.create(workload("Deployment", "web", replicas=1, runs=False))
    name = eventually(pods.names)[0]
    pods.patch(name, MERGE_PATCH, {"metadata": {"finalizers": [HOLD]}})
    deployments.delete("web", {"propagationPolicy": "Foreground"})
    eventually(lambda: "deletionTimestamp" in pods.get(name)["metadata"])
    assert deployments.exists("web")
    assert sets.names()
    pods.patch(name, MERGE_PATCH, {"metadata": {"finalizers": None}})
    eventually(lambda: not deployments.exists("web") and not sets.names() and not pods.names())


def test_two_that_own_each_other_can_be_deleted_in_the_foreground(config_maps):
    one = config_maps.create(config_map("one"))
    other = config_maps.create(config_map("other", ownerReferences=owned_by(one, blocks=True)))
    config_maps.patch("one", MERGE_PATCH, {"metadata": {"ownerReferences": owned_by(other, blocks=True)}})
    config_maps.delete("one", {"propagationPolicy": "Foreground"})
    eventually(lambda: not config_maps.exists("one") and not config_maps.exists("other"))


def test_a_deployment_deleted_alone_leaves_its_pods_to_the_next_of_its_name(of, pods):
    deployments, sets = of("apps/v1/deployments"), of("apps/v1/replicasets")
    deployments.create(workload("Deployment", "web", replicas=1, runs=False))
    name = eventually(pods.names)[0]
    deployments.delete("web", {"propagationPolicy": "Orphan"})
    eventually(lambda: not deployments.exists("web"))
    assert "ownerReferences" not in sets.listing()["items"][0]["metadata"]
    made = deployments.create(workload("Deployment", "web", replicas=1, runs=False))
    owner = eventually(lambda: sets.listing()["items"][0]["metadata"].get("ownerReferences"))[0]
    assert owner["uid"] == made["metadata"]["uid"]
    assert pods.names() == [name]


def test_what_every_namespace_has_is_put_back(of, config_maps):
    authority = eventually(lambda: config_maps.exists("kube-root-ca.crt") and config_maps.get("kube-root-ca.crt"))
    assert authority["data"]["ca.crt"].startswith("-----BEGIN CERTIFICATE-----")
    config_maps.delete("kube-root-ca.crt")
    eventually(lambda: config_maps.exists("kube-root-ca.crt"))
    of("serviceaccounts").delete("default")
    eventually(lambda: of("serviceaccounts").exists("default"))


def test_a_namespace_waits_for_what_is_held_in_it(api, namespace, widgets, config_maps):
    namespaces = api.collection("namespaces")
    eventually(lambda: widgets.create(widget("one")))
    config_maps.create(config_map("held", finalizers=[HOLD]))
    namespaces.delete(namespace)
    eventually(lambda: not widgets.exists("one") and "deletionTimestamp" in config_maps.get("held")["metadata"])
    assert namespaces.exists(namespace)
    config_maps.patch("held", MERGE_PATCH, {"metadata": {"finalizers": None}})
    eventually(lambda: not namespaces.exists(namespace))
