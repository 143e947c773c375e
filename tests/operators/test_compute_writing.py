"""What the operator writes for Computes, on an API server of each engine where nobody else does anything.

What the StatefulSet's controller and a kubelet would say, tests say by hand.
"""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest
import pytest_asyncio

from tessera.errors import NotFound
from tessera.kube.access import find_access
from tessera.kube.client import Client, Deletion, PatchType
from tessera.kube.kinds import CUSTOM_RESOURCE_DEFINITIONS, EVENTS, SECRETS, Kind, Selection
from tessera.operators.compute_objects import COMPUTE_DOCUMENTS, GATEWAYS, GRPC_ROUTES, SERVICES, STATEFUL_SETS
from tessera.operators.compute_running import ComputeOperator
from tests.operators.compute_home import Document, Home, Writes, look_again, operating
from tests.operators.compute_life import condition_of
from tests.operators.conftest import Engine
from tests.operators.life import PATIENCE_S, until

pytestmark = pytest.mark.asyncio


@pytest.fixture
def home(api: Client, namespace: str) -> Home:
    return Home(api, namespace)


@pytest_asyncio.fixture
async def operator(home: Home) -> AsyncIterator[ComputeOperator]:
    async with operating(home.client) as operator:
        yield operator


def managers_of(document: Document) -> set[str]:
    return {one["manager"] for one in document["metadata"]["managedFields"] if not one.get("subresource")}


@pytest.mark.usefixtures("operator")
async def test_all_is_made_by_apply_and_owned_by_the_compute(home: Home):
    await home.make()
    compute = await home.until_told("StatefulSetNotReady")
    for kind, name in ((STATEFUL_SETS, "demo"), (SERVICES, "demo"), (SECRETS, "demo-token")):
        made = await home.get(kind, name)
        (owner,) = made["metadata"]["ownerReferences"]
        assert (owner["uid"], owner["controller"], owner["blockOwnerDeletion"]) == (
            compute["metadata"]["uid"],
            True,
            True,
        )
    assert managers_of(await home.get(STATEFUL_SETS)) == {"kpu-compute-controller"}
    assert managers_of(await home.get(SERVICES)) == {"kpu-compute-controller"}


@pytest.mark.usefixtures("operator")
async def test_a_variable_that_is_no_longer_wanted_goes_from_the_pod_too(home: Home):
    await home.make(spec={"env": [{"name": "A", "value": "1"}, {"name": "KPU_PORT", "value": "6000"}]})
    await home.until_told("StatefulSetNotReady")
    await home.change({"env": [{"name": "B", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}}]})

    def is_changed(found: Document) -> bool:
        env = found["spec"]["template"]["spec"]["containers"][0]["env"]
        return "B" in [one["name"] for one in env]

    container = (await home.until(STATEFUL_SETS, is_changed))["spec"]["template"]["spec"]["containers"][0]
    env = {one["name"]: one for one in container["env"]}
    assert "A" not in env
    assert env["KPU_PORT"]["value"] == "50051"
    assert env["B"]["valueFrom"]["fieldRef"]["fieldPath"] == "metadata.name"


@pytest.mark.usefixtures("operator")
@pytest.mark.parametrize("kind", [STATEFUL_SETS, SERVICES], ids=lambda kind: kind.name)
async def test_what_was_removed_is_made_again(home: Home, kind: Kind[Any]):
    await home.make()
    await home.until_told("StatefulSetNotReady")
    before = (await home.get(kind))["metadata"]["uid"]
    await home.client.delete(kind, "demo", namespace=home.namespace, how=Deletion(propagation="Background"))
    await home.until(kind, lambda found: found["metadata"]["uid"] != before)


@pytest.mark.usefixtures("operator")
async def test_a_removed_token_is_made_again_and_reaches_the_pod(home: Home):
    await home.make()
    await home.until_told("StatefulSetNotReady")
    before, digest = await home.get(SECRETS, "demo-token"), _digest_on(await home.get(STATEFUL_SETS))
    await home.client.delete(SECRETS, "demo-token", namespace=home.namespace)
    after = await home.until(SECRETS, lambda found: found["metadata"]["uid"] != before["metadata"]["uid"], "demo-token")
    assert after["data"]["token"] != before["data"]["token"]
    await home.until(STATEFUL_SETS, lambda found: _digest_on(found) != digest)


def _digest_on(stateful_set: Document) -> str:
    return stateful_set["spec"]["template"]["metadata"]["annotations"]["compute.kpu.dev/token-digest"]


@pytest.mark.usefixtures("operator")
async def test_what_others_change_is_put_right_and_what_they_add_is_left(home: Home):
    await home.make()
    await home.until_told("StatefulSetNotReady")
    change = {"metadata": {"labels": {"mine": "yes"}}, "spec": {"replicas": 3}}
    await home.client.patch(STATEFUL_SETS, "demo", change, namespace=home.namespace)
    found = await home.until(STATEFUL_SETS, lambda found: found["spec"]["replicas"] == 1)
    assert found["metadata"]["labels"]["mine"] == "yes"


@pytest.mark.usefixtures("operator")
@pytest.mark.parametrize(
    ("kind", "name", "body"),
    [
        (SERVICES, "demo", {"spec": {"ports": [{"port": 80}]}}),
        (SECRETS, "demo-token", {"stringData": {"token": "theirs"}}),
    ],
    ids=lambda value: getattr(value, "name", None),
)
async def test_what_is_somebody_elses_is_not_taken_over(home: Home, kind: Kind[Any], name: str, body: Document):
    await home.client.create(kind, {"metadata": {"name": name}, **body}, namespace=home.namespace)
    await home.make()
    compute = await home.until_told("NameTaken")
    stalled = condition_of(compute, "Stalled")
    assert (stalled["status"], stalled["reason"]) == ("True", "NameTaken")
    assert f"{kind.name} {name} is there already and belongs to somebody else" in stalled["message"]
    assert "ownerReferences" not in (await home.get(kind, name))["metadata"]
    await home.client.delete(kind, name, namespace=home.namespace)
    await home.until_told("StatefulSetNotReady")


@pytest.mark.usefixtures("operator")
async def test_what_an_earlier_compute_of_this_name_left_is_waited_for(home: Home):
    owner = {
        "apiVersion": "compute.kpu.dev/v1alpha1",
        "kind": "Compute",
        "name": "demo",
        "uid": "gone",
        "controller": True,
    }
    body = {"metadata": {"name": "demo", "ownerReferences": [owner]}, "spec": {"ports": [{"port": 80}]}}
    await home.client.create(SERVICES, body, namespace=home.namespace)
    await home.make()
    compute = await home.until_told("PredecessorGoing")
    assert condition_of(compute, "Stalled")["status"] == "False"
    await home.client.delete(SERVICES, "demo", namespace=home.namespace)
    await home.until_told("StatefulSetNotReady")


@pytest.mark.usefixtures("operator")
async def test_a_spec_that_no_pod_can_have_is_stalled_until_it_changes(home: Home):
    await home.make(spec={"labels": {"team": "not a value!"}})
    compute = await home.until(COMPUTE_DOCUMENTS, lambda one: condition_of(one, "Stalled").get("status") == "True")
    assert "not a value!" in condition_of(compute, "Ready")["message"]
    await home.change({"labels": {"team": "ml"}})
    await home.until_told("StatefulSetNotReady")


@pytest.mark.usefixtures("operator")
async def test_times_stay_while_a_condition_does(home: Home):
    await home.make()
    first = await home.until_told("StatefulSetNotReady")
    since = {one["type"]: one["lastTransitionTime"] for one in first["status"]["conditions"]}
    await asyncio.sleep(1.1)  # times have seconds
    await home.tell_set(readyReplicas=1, updatedReplicas=1)
    ready = await home.until_told("StatefulSetReady")
    now = {one["type"]: one["lastTransitionTime"] for one in ready["status"]["conditions"]}
    assert now["Ready"] > since["Ready"]
    assert now["Suspended"] == since["Suspended"]
    assert ready["status"]["addresses"][1]["value"] == f"demo.{home.namespace}.svc.cluster.local"


@pytest.mark.usefixtures("operator")
async def test_an_image_without_a_name_is_stalled_until_another_is_wanted(home: Home):
    await home.make()
    await home.until_told("StatefulSetNotReady")
    waiting = {"reason": "InvalidImageName", "message": 'couldn\'t parse image name "A!"'}
    container = {"name": "server", "state": {"waiting": waiting}, "ready": False, "restartCount": 0}
    await home.tell_pod(phase="Pending", containerStatuses=[container | {"image": "A!", "imageID": ""}])
    await home.tell_set()
    compute = await home.until_told("InvalidImageName")
    assert condition_of(compute, "Stalled")["message"] == waiting["message"]
    await home.change({"image": "better"})
    compute = await home.until_told("StatefulSetNotReady")
    assert condition_of(compute, "Stalled")["status"] == "False"
    assert compute["status"]["observedGeneration"] == compute["metadata"]["generation"]


@pytest.mark.usefixtures("operator")
async def test_without_a_gateway_api_a_wish_for_a_route_is_told(home: Home):
    await home.make(spec={"route": {"parentRefs": [{"name": "gate"}]}})
    compute = await home.until(COMPUTE_DOCUMENTS, lambda one: condition_of(one, "Routed"))
    routed = condition_of(compute, "Routed")
    assert (routed["status"], routed["reason"]) == ("False", "NoGatewayAPI")
    assert GRPC_ROUTES.plural in routed["message"]


@pytest_asyncio.fixture
async def gateway_api(api: Client) -> AsyncIterator[None]:
    """The kinds of the Gateway API that matter, which hold anything."""
    for kind in (GRPC_ROUTES, GATEWAYS):
        await api.create(CUSTOM_RESOURCE_DEFINITIONS, a_definition(kind))
        await until_served(api, kind)
    yield
    for kind in (GRPC_ROUTES, GATEWAYS):
        await api.delete(CUSTOM_RESOURCE_DEFINITIONS, f"{kind.plural}.{kind.group}")


def a_definition(kind: Kind[Any]) -> Document:
    anything = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    version = {"name": kind.version, "served": True, "storage": True, "schema": {"openAPIV3Schema": anything}}
    names = {"kind": kind.name, "plural": kind.plural, "singular": kind.name.lower(), "listKind": f"{kind.name}List"}
    annotations = {"api-approved.kubernetes.io": "unapproved, for tests"}
    metadata = {"name": f"{kind.plural}.{kind.group}", "annotations": annotations}
    return {
        "metadata": metadata,
        "spec": {"group": kind.group, "scope": "Namespaced", "names": names, "versions": [version]},
    }


async def until_served(api: Client, kind: Kind[Any]) -> None:
    async with asyncio.timeout(PATIENCE_S):
        while True:
            try:
                await api.list(kind)
                return
            except NotFound:
                await asyncio.sleep(0.05)


@pytest.mark.usefixtures("gateway_api", "operator")
async def test_a_route_is_made_told_of_and_removed_again(home: Home):
    gate = {"metadata": {"name": "gate"}, "spec": {"listeners": [{"port": 80, "protocol": "HTTP"}]}}
    gate |= {"apiVersion": GATEWAYS.api_version, "kind": "Gateway", "status": {"addresses": [{"value": "192.0.2.7"}]}}
    await home.client.create(GATEWAYS, gate, namespace=home.namespace)
    await home.make(spec={"route": {"parentRefs": [{"name": "gate"}]}})
    compute = await home.until(COMPUTE_DOCUMENTS, lambda one: condition_of(one, "Routed").get("status") == "True")
    assert compute["status"]["addresses"][-1] == {"type": "IPAddress", "value": "192.0.2.7", "port": 80}
    assert (await home.get(GRPC_ROUTES))["spec"]["rules"][0]["backendRefs"] == [{"name": "demo", "port": 50051}]
    await home.change({"route": None})
    compute = await home.until(COMPUTE_DOCUMENTS, lambda one: not condition_of(one, "Routed"))
    assert all(one["value"] != "192.0.2.7" for one in compute["status"]["addresses"])
    async with asyncio.timeout(PATIENCE_S):
        while (await home.client.list(GRPC_ROUTES, Selection(namespace=home.namespace))).items:
            await asyncio.sleep(0.05)


@pytest.mark.usefixtures("operator")
async def test_people_are_told_of_what_changes(home: Home):
    await home.make()
    await home.until_told("StatefulSetNotReady")
    await home.tell_set(readyReplicas=1, updatedReplicas=1)
    await home.until_told("StatefulSetReady")
    await home.change({"suspend": True})
    await home.until_told("Suspended")

    async def told() -> list[str]:
        events = await home.client.list(EVENTS, Selection(namespace=home.namespace))
        return [one["reason"] for one in events.items if one["involvedObject"]["kind"] == "Compute"]

    async with asyncio.timeout(PATIENCE_S):
        while sorted(await told()) != ["Ready", "Suspended"]:
            await asyncio.sleep(0.05)


async def test_nothing_is_written_while_nothing_changes(engine: Engine, home: Home):
    async with operating(home.client):
        await home.make()
        await home.until_told("StatefulSetNotReady")
    token = (await home.get(SECRETS, "demo-token"))["data"]
    versions = [
        (await home.get(kind))["metadata"]["resourceVersion"] for kind in (STATEFUL_SETS, SERVICES, COMPUTE_DOCUMENTS)
    ]
    async with Writes(engine) as witness, operating(witness) as operator:
        await until(lambda: len(witness.noted) == 2)
        await look_again(operator)
        await look_again(operator)
        assert witness.noted == ["apply Service", "apply StatefulSet"], "once at the start, and then nothing at all"
    assert (await home.get(SECRETS, "demo-token"))["data"] == token
    assert versions == [
        (await home.get(kind))["metadata"]["resourceVersion"] for kind in (STATEFUL_SETS, SERVICES, COMPUTE_DOCUMENTS)
    ]


async def test_two_operators_at_once_make_nothing_twice(engine: Engine, home: Home):
    async with Client(find_access(engine.kubeconfig)) as other, operating(home.client), operating(other):
        for number in range(10):
            await home.make(f"demo-{number}")
        for number in range(10):
            await home.until_told("StatefulSetNotReady", f"demo-{number}")
        sets = await home.client.list(STATEFUL_SETS, Selection(namespace=home.namespace))
        assert len(sets.items) == 10
        digests = {one["metadata"]["name"]: _digest_on(one) for one in sets.items}
    async with operating(home.client) as third:
        await look_again(third, 10)
        sets = await home.client.list(STATEFUL_SETS, Selection(namespace=home.namespace))
        assert {one["metadata"]["name"]: _digest_on(one) for one in sets.items} == digests


async def test_an_operator_that_starts_late_lets_go_of_what_was_deleted_meanwhile(home: Home):
    grace = {"compute.kpu.dev/deletion-grace-seconds": "5"}
    await home.make(finalizers=["compute.kpu.dev/deletion", "example.com/other"], annotations=grace)
    await home.client.delete(COMPUTE_DOCUMENTS, "demo", namespace=home.namespace)
    async with operating(home.client):
        left = await home.until(COMPUTE_DOCUMENTS, lambda one: len(one["metadata"]["finalizers"]) == 1)
        assert left["metadata"]["finalizers"] == ["example.com/other"]
    nothing = [{"op": "remove", "path": "/metadata/finalizers"}]
    await home.client.patch(COMPUTE_DOCUMENTS, "demo", nothing, namespace=home.namespace, patch_type=PatchType.JSON)
    with pytest.raises(NotFound):
        await home.get(STATEFUL_SETS)
