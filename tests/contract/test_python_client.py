"""The official Python client, as our SDKs and the HAMi clients use it."""

import json
from typing import Any

import pytest
import yaml
from kubernetes import client, config, dynamic, utils, watch
from kubernetes.client.exceptions import ApiException

from tests.contract.objects import config_map, deployment, pod

pytestmark = pytest.mark.contract(area="Python client", needed_by="Python client, HAMi clients, Compute, MPIJob")


@pytest.fixture
def connection(engine):
    configuration = client.Configuration()
    config.load_kube_config(str(engine.kubeconfig), client_configuration=configuration)
    with client.ApiClient(configuration) as connection:
        yield connection
        connection.rest_client.pool_manager.clear()


@pytest.fixture
def core(connection):
    return client.CoreV1Api(connection)


@pytest.fixture
def custom(connection, widgets, namespace):
    """Calls of CustomObjectsApi for the test's widgets."""
    api = client.CustomObjectsApi(connection)

    def call(verb, *arguments, **more):
        method = getattr(api, f"{verb}_namespaced_custom_object")
        return method(widgets.group, "v1", namespace, "widgets", *arguments, **more)

    return call


def gpu_pod(name):
    limits = {"nvidia.com/gpu": "1", "nvidia.com/gpumem": "3000"}
    container = client.V1Container(
        name="main", image="registry.invalid/none", resources=client.V1ResourceRequirements(limits=limits)
    )
    spec = client.V1PodSpec(containers=[container], scheduler_name="nobody", restart_policy="Never")
    return client.V1Pod(metadata=client.V1ObjectMeta(name=name, labels={"app": "gpu"}), spec=spec)


@pytest.mark.contract(
    promise="CoreV1Api: pods and nodes are created, read, listed, patched and deleted as typed objects"
)
def test_typed_objects_make_the_round_trip(core, namespace):
    created = core.create_namespaced_pod(namespace, gpu_pod("worker"))
    assert created.spec.containers[0].resources.requests["nvidia.com/gpu"] == "1"
    core.patch_namespaced_pod("worker", namespace, {"metadata": {"annotations": {"hami.io/vgpu-node": "node-1"}}})
    assert core.read_namespaced_pod("worker", namespace).metadata.annotations == {"hami.io/vgpu-node": "node-1"}
    listed = core.list_namespaced_pod(namespace, label_selector="app=gpu", field_selector="status.phase=Pending")
    assert [item.metadata.name for item in listed.items] == ["worker"]
    core.delete_namespaced_pod("worker", namespace, grace_period_seconds=0)
    assert core.list_namespaced_pod(namespace).items == []
    assert core.list_node(label_selector="gpu=no-such").items == []


@pytest.mark.contract(promise="ApiException carries status, reason, headers and the Status object as its body")
def test_an_exception_carries_the_status_object(core, namespace):
    with pytest.raises(ApiException) as refusal:
        core.read_namespaced_pod("absent", namespace)
    error = refusal.value
    assert (error.status, error.reason) == (404, "Not Found")
    assert json.loads(error.body or "")["reason"] == "NotFound"
    assert error.headers


@pytest.mark.contract(
    promise="CustomObjectsApi: create, get, list with selector, replace, patch, delete", needed_by="Compute, MPIJob"
)
def test_custom_objects_make_the_round_trip(custom, widgets):
    custom("create", widgets.widget("w", {"workers": 2}, labels={"app": "training"}))
    assert custom("get", "w")["spec"] == {"workers": 2}
    assert len(custom("list", label_selector="app=training")["items"]) == 1
    assert custom("list", label_selector="app=other")["items"] == []
    patched = custom("patch", "w", {"spec": {"suspend": True}})
    assert patched["spec"] == {"workers": 2, "suspend": True}
    patched["spec"] = {"workers": 3}
    assert custom("replace", "w", patched)["spec"] == {"workers": 3}
    custom("delete", "w", grace_period_seconds=30)
    with pytest.raises(ApiException, match="404"):
        custom("get", "w")


@pytest.mark.contract(
    promise="CustomObjectsApi applies on the server side when told the content type", needed_by="Compute"
)
def test_a_custom_object_is_applied(custom, widgets):
    more = {"field_manager": "kpu-python-client", "force": True, "_content_type": "application/apply-patch+yaml"}
    # This client decodes an answer of 200 and not one of 201: the first apply gives None.
    custom("patch", "w", widgets.widget("w", {"size": 1}), **more)
    assert widgets.get("w")["spec"] == {"size": 1}
    applied = custom("patch", "w", widgets.widget("w", {"size": 2}), **more)
    assert applied["spec"] == {"size": 2}
    assert [entry["manager"] for entry in applied["metadata"]["managedFields"]] == ["kpu-python-client"]


@pytest.mark.contract(promise="watch.Watch streams typed events from a version and stops when told")
def test_a_watch_streams_typed_events(core, namespace):
    version = core.list_namespaced_pod(namespace).metadata.resource_version
    core.create_namespaced_pod(namespace, gpu_pod("worker"))
    core.delete_namespaced_pod("worker", namespace)
    stream = watch.Watch()
    events: Any = stream.stream(core.list_namespaced_pod, namespace, resource_version=version, timeout_seconds=20)
    seen = []
    for event in events:
        seen.append((event["type"], event["object"].metadata.name))
        if event["type"] == "DELETED":
            stream.stop()
    assert seen[0] == ("ADDED", "worker")
    assert seen[-1] == ("DELETED", "worker")


@pytest.mark.contract(promise="watch.Watch on custom objects ends by timeout_seconds", needed_by="Compute")
def test_a_watch_of_custom_objects_ends_in_time(connection, widgets, namespace):
    widgets.create(widgets.widget("w", {"size": 1}))
    api = client.CustomObjectsApi(connection)
    arguments = (widgets.group, "v1", namespace, "widgets")
    events: Any = watch.Watch().stream(api.list_namespaced_custom_object, *arguments, timeout_seconds=1)
    assert [event["object"]["metadata"]["name"] for event in events] == ["w"]


@pytest.mark.contract(
    promise="The dynamic client finds a resource by discovery and applies to it", needed_by="Python client"
)
def test_the_dynamic_client_discovers_a_custom_resource(connection, widgets, namespace, tmp_path):
    found = dynamic.DynamicClient(connection, cache_file=str(tmp_path / "discovery.json"))
    resource = found.resources.get(api_version=f"{widgets.group}/v1", kind="Widget")
    resource.create(body=widgets.widget("w", {"size": 1}), namespace=namespace)
    resource.server_side_apply(body=widgets.widget("w", {"colour": "red"}), namespace=namespace, field_manager="me")
    assert resource.get(name="w", namespace=namespace).spec.to_dict() == {"size": 1, "colour": "red"}
    resource.delete(name="w", namespace=namespace)


@pytest.mark.contract(
    promise="utils.create_from_yaml creates every object of a file, and reports what is there already",
    needed_by="Python client",
)
def test_objects_are_created_from_a_file(connection, namespace, deployments, tmp_path):
    manifest = tmp_path / "manifest.yaml"
    manifest.write_text(yaml.safe_dump_all([config_map("settings"), deployment("web", replicas=0)]))
    utils.create_from_yaml(connection, str(manifest), namespace=namespace)
    assert deployments.exists("web")
    with pytest.raises(utils.FailToCreateError, match="already exists"):
        utils.create_from_yaml(connection, str(manifest), namespace=namespace)


@pytest.mark.contract(promise="Binding and eviction through the client", needed_by="Python client")
def test_a_pod_is_bound_and_evicted(core, namespace, pods):
    pods.create(pod("worker"))
    target = client.V1ObjectReference(kind="Node", name="node-a", api_version="v1")
    body = client.V1Binding(metadata=client.V1ObjectMeta(name="worker"), target=target)
    core.create_namespaced_pod_binding("worker", namespace, body, _preload_content=False)
    assert core.read_namespaced_pod("worker", namespace).spec.node_name == "node-a"
    eviction = client.V1Eviction(metadata=client.V1ObjectMeta(name="worker"))
    core.create_namespaced_pod_eviction("worker", namespace, eviction)
    assert core.read_namespaced_pod("worker", namespace).metadata.deletion_timestamp
