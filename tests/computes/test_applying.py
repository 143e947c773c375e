"""What an apply does to a Compute that others have a hand in too, and what is refused."""

import json
from collections.abc import Callable

import pytest
from kubernetes import client

from kpu.client import Compute
from kpu.client.api import Api, names_an_object, status_of
from tests.computes.conftest import MakeCompute
from tests.contract.command_line import CommandLine

pytestmark = pytest.mark.asyncio


def shown(kubectl: CommandLine, name: str) -> dict:
    return json.loads(kubectl("get", "compute", name, "--show-managed-fields", "-o", "json"))


def apply_as(kubectl: CommandLine, manager: str, name: str, spec: dict, **metadata: object) -> None:
    document = {
        "apiVersion": "compute.kpu.dev/v1alpha1",
        "kind": "Compute",
        "metadata": {"name": name, **metadata},
        "spec": spec,
    }
    kubectl("apply", "--server-side", f"--field-manager={manager}", "-f", "-", input=json.dumps(document))


async def test_the_apply_takes_over_what_another_manager_owns_and_leaves_the_rest_to_it(
    kubectl: CommandLine, make_compute: MakeCompute
):
    theirs = {"image": "theirs", "suspend": True, "env": [{"name": "THEIRS", "value": "1"}]}
    apply_as(kubectl, "other", "worker", theirs, annotations={"theirs": "kept"})
    compute = make_compute("worker", image="ours", env={"OURS": "2"}, suspend=True)
    now = shown(kubectl, "worker")
    assert now["spec"]["image"] == "ours"
    assert {one["name"] for one in now["spec"]["env"]} == {"THEIRS", "OURS"}
    assert now["metadata"]["annotations"]["theirs"] == "kept"
    owned = {
        one["manager"]: one["fieldsV1"]["f:spec"]
        for one in now["metadata"]["managedFields"]
        if "f:spec" in one["fieldsV1"]
    }
    assert "f:image" in owned["kpu-python-client"]
    assert "f:image" not in owned["other"]
    await compute.resume()
    assert {one["name"] for one in shown(kubectl, "worker")["spec"]["env"]} == {"THEIRS", "OURS"}


async def test_the_same_apply_twice_changes_nothing(make_compute: MakeCompute):
    first = make_compute("worker", suspend=True, labels={"team": "ml"})
    second = make_compute("worker", suspend=True, labels={"team": "ml"})
    assert first.resource
    assert second.resource
    assert second.resource.metadata.uid == first.resource.metadata.uid
    assert second.resource.metadata.generation == first.resource.metadata.generation


async def test_what_a_later_intent_leaves_out_goes(kubectl: CommandLine, make_compute: MakeCompute):
    make_compute("worker", image="a", env={"A": "1", "B": "2"}, args=["-v"], suspend=True)
    make_compute("worker", image="b", env={"B": "3"}, suspend=True)
    spec = shown(kubectl, "worker")["spec"]
    assert spec == {"image": "b", "env": [{"name": "B", "value": "3"}], "suspend": True}


async def test_computes_are_found_by_their_labels(kubectl: CommandLine, make_compute: MakeCompute):
    make_compute("worker", labels={"team": "ml"}, suspend=True)
    make_compute("other", suspend=True)
    assert kubectl("get", "computes", "-l", "team=ml", "-o", "name").split() == ["compute.compute.kpu.dev/worker"]


async def test_a_name_alone_is_enough(kubectl: CommandLine, make_compute: MakeCompute):
    make_compute("x" * 63)
    assert shown(kubectl, "x" * 63)["spec"] == {"suspend": False}


async def test_what_the_schema_refuses_is_raised_where_the_compute_is_made(make_compute: MakeCompute):
    with pytest.raises(client.ApiException) as refused:
        make_compute("worker", labels={"team": "not a label value!"})
    assert refused.value.status == 422
    assert "not a label value!" in str(refused.value)


async def test_who_may_not_apply_is_told_so_where_the_compute_is_made(
    fresh: Callable[..., None], configuration: client.Configuration, kubectl: CommandLine, namespace: str
):
    nobody = client.Configuration()
    nobody.host, nobody.ssl_ca_cert = configuration.host, configuration.ssl_ca_cert
    nobody.api_key_prefix["authorization"] = "Bearer"
    nobody.api_key["authorization"] = kubectl("create", "token", "default").strip()
    fresh(client_config=nobody, namespace=namespace)
    with pytest.raises(client.ApiException) as refused:
        Compute("worker")
    assert refused.value.status == 403
    assert "cannot patch resource" in str(refused.value)


async def test_a_namespace_that_is_not_there_is_told(fresh: Callable[..., None], configuration: client.Configuration):
    fresh(client_config=configuration, namespace="nobody-made-this")
    with pytest.raises(client.ApiException, match=r"nobody-made-this.* not found") as refused:
        Compute("worker")
    assert refused.value.status == 404
    assert "operator" not in str(refused.value)


async def test_a_kind_that_the_server_does_not_know_is_told_from_an_object_that_it_does_not_have(
    configuration: client.Configuration,
):
    api = Api(configuration)
    with pytest.raises(client.ApiException) as unknown_kind:
        api.apply("/apis/nobody.example/v1/namespaces/default/things/x", {"kind": "Thing"}, "test")
    with pytest.raises(client.ApiException) as unknown_object:
        api.get("/apis/compute.kpu.dev/v1alpha1/namespaces/default/computes/nobody-made-this")
    assert [status_of(one.value) for one in (unknown_kind, unknown_object)] == [404, 404]
    assert [names_an_object(one.value) for one in (unknown_kind, unknown_object)] == [False, True]
