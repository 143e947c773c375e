"""The three kinds of patches, and that each is done wholly or not at all."""

import pytest

from tests.contract.api import JSON_PATCH, MERGE_PATCH, STRATEGIC_PATCH
from tests.contract.objects import config_map, deployment, pod
from tests.contract.refusals import refused

pytestmark = pytest.mark.contract(area="Patching", needed_by="everything")


@pytest.fixture
def settings(config_maps):
    return config_maps.create(config_map("settings", {"colour": "red", "shape": "round"}, labels={"a": "1"}))


@pytest.mark.usefixtures("settings")
@pytest.mark.contract(
    promise="JSON patch: add, replace, remove, move and copy, in order", needed_by="kube, kubectl, Java client"
)
def test_operations_of_a_json_patch_are_done_in_order(config_maps):
    operations = [
        {"op": "add", "path": "/data/size", "value": "small"},
        {"op": "replace", "path": "/data/colour", "value": "blue"},
        {"op": "copy", "from": "/data/colour", "path": "/data/border"},
        {"op": "move", "from": "/data/shape", "path": "/data/form"},
        {"op": "remove", "path": "/metadata/labels/a"},
    ]
    patched = config_maps.patch("settings", JSON_PATCH, operations)
    assert patched["data"] == {"size": "small", "colour": "blue", "border": "blue", "form": "round"}
    assert "labels" not in patched["metadata"]


@pytest.mark.usefixtures("settings")
@pytest.mark.contract(promise="JSON patch: `~1` is a slash in a key and `~0` a tilde", needed_by="scheduler, admission")
def test_slashes_and_tildes_in_keys_are_escaped(config_maps):
    annotations = {"op": "add", "path": "/metadata/annotations", "value": {}}
    one = {"op": "add", "path": "/metadata/annotations/hami.io~1vgpu-node", "value": "node-1"}
    other = {"op": "add", "path": "/metadata/annotations/a~0b", "value": "c"}
    with refused(422, "Invalid") as refusal:
        config_maps.patch("settings", JSON_PATCH, [annotations, other])
    assert "a~b" in refusal.value.message
    patched = config_maps.patch("settings", JSON_PATCH, [annotations, one])
    assert patched["metadata"]["annotations"] == {"hami.io/vgpu-node": "node-1"}


@pytest.mark.usefixtures("settings")
@pytest.mark.contract(
    promise="JSON patch: a test that fails is 422 and leaves everything as it was", needed_by="scheduler, kube"
)
def test_a_failed_test_undoes_what_came_before_it(config_maps):
    operations = [
        {"op": "replace", "path": "/data/colour", "value": "blue"},
        {"op": "test", "path": "/data/shape", "value": "square"},
    ]
    with refused(422, "Invalid"):
        config_maps.patch("settings", JSON_PATCH, operations)
    assert config_maps.get("settings")["data"]["colour"] == "red"


@pytest.mark.usefixtures("settings")
@pytest.mark.contract(
    promise="JSON patch: a path that leads nowhere is 422 and leaves everything as it was", needed_by="kube"
)
def test_a_json_patch_of_something_absent_does_nothing(config_maps):
    operations = [{"op": "remove", "path": "/data/colour"}, {"op": "remove", "path": "/data/absent"}]
    with refused(422, "Invalid"):
        config_maps.patch("settings", JSON_PATCH, operations)
    assert "colour" in config_maps.get("settings")["data"]


@pytest.mark.contract(promise="JSON patch: `-` appends to a list and an index inserts into it", needed_by="admission")
def test_a_json_patch_inserts_into_a_list(deployments):
    deployments.create(deployment("web", replicas=0))
    path = "/spec/template/spec/containers"
    extra = {"image": "registry.invalid/none"}
    operations = [
        {"op": "add", "path": f"{path}/-", "value": extra | {"name": "last"}},
        {"op": "add", "path": f"{path}/0", "value": extra | {"name": "first"}},
    ]
    patched = deployments.patch("web", JSON_PATCH, operations)
    names = [container["name"] for container in patched["spec"]["template"]["spec"]["containers"]]
    assert names == ["first", "main", "last"]


@pytest.mark.usefixtures("settings")
@pytest.mark.contract(
    promise="Merge patch: null deletes a key, objects are merged", needed_by="everything, Compute, MPIJob"
)
def test_a_null_deletes(config_maps):
    patch = {"metadata": {"labels": {"b": "2"}}, "data": {"colour": None, "size": "small"}}
    patched = config_maps.patch("settings", MERGE_PATCH, patch)
    assert patched["metadata"]["labels"] == {"a": "1", "b": "2"}
    assert patched["data"] == {"shape": "round", "size": "small"}


@pytest.mark.contract(promise="Merge patch: lists are replaced as a whole", needed_by="operators")
def test_a_merge_patch_replaces_a_list(widgets):
    widgets.create(widgets.widget("w", {"ids": [1, 2], "kept": True}))
    patched = widgets.patch("w", MERGE_PATCH, {"spec": {"ids": [3]}})
    assert patched["spec"] == {"ids": [3], "kept": True}


@pytest.mark.contract(
    promise="Strategic merge: containers and their env are merged by name", needed_by="kubectl, Python client"
)
def test_a_strategic_patch_merges_lists_by_their_keys(deployments):
    wanted = deployment("web", replicas=0)
    wanted["spec"]["template"]["spec"]["containers"][0]["env"] = [{"name": "A", "value": "1"}]
    deployments.create(wanted)
    container = {"name": "main", "env": [{"name": "B", "value": "2"}, {"name": "A", "value": "3"}]}
    patch = {"spec": {"template": {"spec": {"containers": [container]}}}}
    patched = deployments.patch("web", STRATEGIC_PATCH, patch)
    containers = patched["spec"]["template"]["spec"]["containers"]
    assert len(containers) == 1
    assert containers[0]["image"] == "registry.invalid/none"
    assert {entry["name"]: entry["value"] for entry in containers[0]["env"]} == {"A": "3", "B": "2"}


@pytest.mark.contract(
    promise="Strategic merge: `$patch: delete` removes one element, `$patch: replace` all", needed_by="kubectl"
)
def test_a_strategic_patch_deletes_and_replaces_elements(deployments):
    wanted = deployment("web", replicas=0)
    env = [{"name": name, "value": "1"} for name in ("A", "B")]
    wanted["spec"]["template"]["spec"]["containers"][0]["env"] = env
    deployments.create(wanted)

    def patch_env(env):
        containers = [{"name": "main", "env": env}]
        patched = deployments.patch(
            "web", STRATEGIC_PATCH, {"spec": {"template": {"spec": {"containers": containers}}}}
        )
        return [entry["name"] for entry in patched["spec"]["template"]["spec"]["containers"][0]["env"]]

    assert patch_env([{"name": "A", "$patch": "delete"}]) == ["B"]
    assert patch_env([{"name": "C", "value": "1"}, {"$patch": "replace"}]) == ["C"]


@pytest.mark.contract(promise="Strategic merge: `$setElementOrder` puts a merged list in order", needed_by="kubectl")
def test_a_strategic_patch_can_say_the_order(deployments):
    deployments.create(deployment("web", replicas=0))
    patch = {
        "$setElementOrder/containers": [{"name": "first"}, {"name": "main"}],
        "containers": [{"name": "first", "image": "registry.invalid/none"}],
    }
    patched = deployments.patch("web", STRATEGIC_PATCH, {"spec": {"template": {"spec": patch}}})
    names = [container["name"] for container in patched["spec"]["template"]["spec"]["containers"]]
    assert names == ["first", "main"]


@pytest.mark.contract(promise="Strategic merge: `$retainKeys` drops the other keys of a union", needed_by="kubectl")
def test_a_strategic_patch_can_change_one_choice_for_another(deployments):
    deployments.create(deployment("web", replicas=0))
    strategy = {"$retainKeys": ["type"], "type": "Recreate"}
    patched = deployments.patch("web", STRATEGIC_PATCH, {"spec": {"strategy": strategy}})
    assert patched["spec"]["strategy"] == {"type": "Recreate"}


@pytest.mark.contract(
    promise="Strategic merge: null deletes, lists of plain values have merge rules too", needed_by="kubectl"
)
def test_a_strategic_patch_merges_finalizers_and_deletes_by_null(config_maps):
    config_maps.create(config_map("settings", finalizers=["contract.example/a"]))
    patch = {"metadata": {"finalizers": ["contract.example/b"]}, "data": None}
    patched = config_maps.patch("settings", STRATEGIC_PATCH, patch)
    assert sorted(patched["metadata"]["finalizers"]) == ["contract.example/a", "contract.example/b"]
    assert "data" not in patched
    config_maps.patch("settings", MERGE_PATCH, {"metadata": {"finalizers": None}})


@pytest.mark.contract(promise="Strategic merge: conditions of a pod are merged by type", needed_by="scheduler, node")
def test_conditions_are_merged_by_type(pods):
    pods.create(pod("worker"))
    for kind in ("One", "Two"):
        condition = {"type": f"contract.example/{kind}", "status": "True"}
        pods.patch("worker/status", STRATEGIC_PATCH, {"status": {"conditions": [condition]}})
    kinds = {condition["type"] for condition in pods.get("worker")["status"]["conditions"]}
    assert {"contract.example/One", "contract.example/Two"} <= kinds


@pytest.mark.contract(promise="Strategic merge of a custom resource is 415", needed_by="kubectl, operators")
def test_a_custom_resource_takes_no_strategic_patch(widgets):
    widgets.create(widgets.widget("w", {"size": 1}))
    with refused(415, "UnsupportedMediaType"):
        widgets.patch("w", STRATEGIC_PATCH, {"spec": {"size": 2}})


@pytest.mark.contract(promise="A patch of something absent is 404; only an apply creates")
@pytest.mark.parametrize(("kind", "body"), [(MERGE_PATCH, {}), (JSON_PATCH, []), (STRATEGIC_PATCH, {})])
def test_a_patch_creates_nothing(config_maps, kind, body):
    with refused(404, "NotFound"):
        config_maps.patch("absent", kind, body)
