"""The verbs, on a real API server."""

import msgspec
import pytest

from tessera.errors import AlreadyExists, BadRequest, Conflict, Forbidden, Invalid, NotFound
from tessera.kube.access import Access, find_access
from tessera.kube.client import Client, Deletion, PatchType
from tessera.kube.kinds import CONFIG_MAPS, DEPLOYMENTS, NAMESPACES, PODS, Selection, kind_of
from tessera.kube.objects import ObjectMeta
from tests.kube.conftest import Api
from tests.kube.manifests import a_config_map, a_deployment, a_pod

pytestmark = pytest.mark.asyncio


class ConfigMap(msgspec.Struct, frozen=True):
    metadata: ObjectMeta
    data: dict[str, str] | None = None


async def make_many(client: Client, namespace: str, count: int) -> None:
    for number in range(count):
        await client.create(CONFIG_MAPS, a_config_map(f"c{number}"), namespace=namespace)


async def test_an_object_comes_back_in_the_type_of_its_kind(client: Client, namespace: str) -> None:
    await client.create(CONFIG_MAPS, a_config_map("a", colour="red"), namespace=namespace)

    got = await client.get(CONFIG_MAPS.decoded_as(ConfigMap), "a", namespace=namespace)

    assert (got.metadata.name, got.metadata.namespace, got.data) == ("a", namespace, {"colour": "red"})


async def test_what_is_there_or_not_there_is_said_so(client: Client, namespace: str) -> None:
    await client.create(CONFIG_MAPS, a_config_map("a"), namespace=namespace)
    with pytest.raises(AlreadyExists, match=f"create configmaps in {namespace}"):
        await client.create(CONFIG_MAPS, a_config_map("a"), namespace=namespace)
    with pytest.raises(NotFound, match=f"get configmaps {namespace}/b"):
        await client.get(CONFIG_MAPS, "b", namespace=namespace)


async def test_a_write_on_an_old_state_is_a_conflict(client: Client, namespace: str) -> None:
    old = await client.create(CONFIG_MAPS, a_config_map("a"), namespace=namespace)
    await client.patch(CONFIG_MAPS, "a", {"data": {"x": "1"}}, namespace=namespace)

    with pytest.raises(Conflict):
        await client.replace(CONFIG_MAPS, "a", old, namespace=namespace)
    stale = {"metadata": {"resourceVersion": old["metadata"]["resourceVersion"]}, "data": {"x": "2"}}
    with pytest.raises(Conflict):
        await client.patch(CONFIG_MAPS, "a", stale, namespace=namespace)


async def test_each_kind_of_patch_does_what_it_says(client: Client, namespace: str) -> None:
    await client.create(PODS, a_pod("a"), namespace=namespace)
    label = [{"op": "add", "path": "/metadata/labels", "value": {"way": "json"}}]
    image = {"spec": {"containers": [{"name": "main", "image": "another"}]}}

    await client.patch(PODS, "a", label, namespace=namespace, patch_type=PatchType.JSON)
    await client.patch(PODS, "a", {"metadata": {"labels": {"too": "merged"}}}, namespace=namespace)
    got = await client.patch(PODS, "a", image, namespace=namespace, patch_type=PatchType.STRATEGIC)

    assert got["metadata"]["labels"] == {"way": "json", "too": "merged"}
    assert [(it["image"], it["imagePullPolicy"]) for it in got["spec"]["containers"]] == [("another", "Always")]


async def test_a_field_that_nobody_knows_is_refused(client: Client, namespace: str) -> None:
    with pytest.raises(BadRequest, match="unknown field"):
        await client.create(CONFIG_MAPS, {**a_config_map("a"), "datum": {}}, namespace=namespace)


async def test_a_value_that_is_not_allowed_is_invalid(client: Client, namespace: str) -> None:
    with pytest.raises(Invalid, match="Invalid value") as refusal:
        await client.create(CONFIG_MAPS, a_config_map("Not A Name"), namespace=namespace)

    assert refusal.value.details["kind"] == "ConfigMap"


async def test_a_dry_run_changes_nothing(client: Client, namespace: str) -> None:
    await client.create(CONFIG_MAPS, a_config_map("dry"), namespace=namespace, dry_run=True)
    await client.create(CONFIG_MAPS, a_config_map("a"), namespace=namespace)
    await client.patch(CONFIG_MAPS, "a", {"data": {"x": "1"}}, namespace=namespace, dry_run=True)
    await client.delete(CONFIG_MAPS, "a", namespace=namespace, how=Deletion(dry_run=True))

    listed = await client.list(CONFIG_MAPS, Selection(namespace=namespace))

    assert [(it["metadata"]["name"], it.get("data")) for it in listed.items] == [("a", None)]


async def test_a_field_of_another_manager_is_applied_only_by_force(client: Client, namespace: str) -> None:
    body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}, "data": {"x": "1"}}
    other = {**body, "data": {"x": "2"}}
    await client.apply(CONFIG_MAPS, "a", body, manager="one", namespace=namespace)

    with pytest.raises(Conflict, match='conflict with "one"'):
        await client.apply(CONFIG_MAPS, "a", other, manager="two", namespace=namespace)
    forced = await client.apply(CONFIG_MAPS, "a", other, manager="two", namespace=namespace, force=True)

    assert forced["data"] == {"x": "2"}


async def test_only_the_incarnation_that_is_meant_is_deleted(client: Client, namespace: str) -> None:
    made = await client.create(CONFIG_MAPS, a_config_map("a"), namespace=namespace)

    with pytest.raises(Conflict):
        await client.delete(CONFIG_MAPS, "a", namespace=namespace, how=Deletion(uid="another"))
    with pytest.raises(Conflict):
        await client.delete(CONFIG_MAPS, "a", namespace=namespace, how=Deletion(resource_version="1"))
    await client.delete(CONFIG_MAPS, "a", namespace=namespace, how=Deletion(uid=made["metadata"]["uid"]))

    with pytest.raises(NotFound):
        await client.get(CONFIG_MAPS, "a", namespace=namespace)


async def test_a_deletion_in_the_foreground_waits_for_what_is_owned(client: Client, namespace: str) -> None:
    await client.create(DEPLOYMENTS, a_deployment("web"), namespace=namespace)

    await client.delete(DEPLOYMENTS, "web", namespace=namespace, how=Deletion(propagation="Foreground"))

    waiting = await client.get(DEPLOYMENTS, "web", namespace=namespace)
    assert waiting["metadata"]["finalizers"] == ["foregroundDeletion"]


async def test_a_selection_can_be_deleted_as_a_whole(client: Client, namespace: str) -> None:
    for name in ("a", "b"):
        await client.create(PODS, a_pod(name, app=name), namespace=namespace)

    chosen = Selection(namespace=namespace, labels="app=a")
    await client.delete_collection(PODS, chosen, how=Deletion(grace_s=0))

    left = await client.list(PODS, Selection(namespace=namespace))
    assert [pod["metadata"]["name"] for pod in left.items] == ["b"]


async def test_status_and_scale_are_written_apart(client: Client, namespace: str) -> None:
    await client.create(DEPLOYMENTS, a_deployment("web"), namespace=namespace)
    status = {"status": {"replicas": 7}}
    await client.patch(DEPLOYMENTS, "web", status, namespace=namespace, subresource="status")
    await client.patch(DEPLOYMENTS, "web", {"spec": {"replicas": 3}}, namespace=namespace, subresource="scale")

    scale = await client.get(DEPLOYMENTS, "web", namespace=namespace, subresource="scale")
    assert (scale["kind"], scale["spec"]["replicas"], scale["status"]["replicas"]) == ("Scale", 3, 7)


@pytest.mark.parametrize("page_size", [1, 3, 4, 5, 0])
async def test_pages_are_put_together(client: Client, namespace: str, page_size: int) -> None:
    await make_many(client, namespace, 4)

    page = await client.list(CONFIG_MAPS, Selection(namespace=namespace), page_size=page_size)

    assert [it["metadata"]["name"] for it in page.items] == ["c0", "c1", "c2", "c3"]
    assert int(page.resource_version) > 0


async def test_a_selection_is_made_by_the_server(client: Client, namespace: str) -> None:
    for name in ("a", "b"):
        await client.create(PODS, a_pod(name, app=name), namespace=namespace)

    by_label = await client.list(PODS, Selection(namespace=namespace, labels="app!=a"))
    by_field = await client.list(PODS, Selection(namespace=namespace, fields="metadata.name=a"))

    assert [pod["metadata"]["name"] for pod in (*by_label.items, *by_field.items)] == ["b", "a"]


async def test_what_nobody_allowed_is_forbidden(api: Api, namespace: str) -> None:
    async with Client(find_access(api.kubeconfig_for("nobody"))) as stranger:
        with pytest.raises(Forbidden, match="grant this verb"):
            await stranger.list(PODS, Selection(namespace=namespace))


async def test_a_kind_that_is_not_served_is_not_found(client: Client) -> None:
    with pytest.raises(NotFound):
        await client.list(kind_of("tessera.test", "v1", "things", "Thing"))


async def test_the_server_says_which_version_it_is(client: Client, access: Access) -> None:
    assert (await client.server_version())["gitVersion"].startswith("v1.")
    assert (await client.within(5).get(NAMESPACES, access.namespace))["kind"] == "Namespace"
