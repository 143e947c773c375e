"""What the operator writes for Computes, on an API server of each engine where nobody else does anything.

What the StatefulSet's controller and a kubelet would say, tests say by hand.
"""

import asyncio
from collections.abc import AsyncIterator
from contextlib import suppress
from typing import Any

import pytest
import pytest_asyncio

from tessera.errors import Forbidden, NotFound
from tessera.kube.access import find_access
from tessera.kube.client import Client, Deletion, PatchType
from tessera.kube.kinds import CUSTOM_RESOURCE_DEFINITIONS, EVENTS, PODS, SECRETS, SERVICES, Kind, Selection
from tessera.kube.objects import ObjectKey
from tessera.operators.compute_objects import COMPUTE_DOCUMENTS, GATEWAYS, GRPC_ROUTES, STATEFUL_SETS
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

    found = await home.until(STATEFUL_SETS, lambda found: "B" in _variables_of(found))
    container = found["spec"]["template"]["spec"]["containers"][0]
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


async def test_a_server_whose_token_was_spoilt_serves_on_where_it_is(home: Home, operator: ComputeOperator):
    await home.make()
    await home.until_told("StatefulSetNotReady")
    await home.tell_set(readyReplicas=1, updatedReplicas=1)
    addresses = (await home.until_told("StatefulSetReady"))["status"]["addresses"]
    await home.spoil_token()
    await look_again(operator)
    compute = await home.until(COMPUTE_DOCUMENTS, lambda one: condition_of(one, "Stalled")["status"] == "True")
    assert condition_of(compute, "Stalled")["reason"] == "TokenMissing"
    assert condition_of(compute, "Ready")["status"] == "True"
    assert compute["status"]["addresses"] == addresses
    await home.change({"env": [{"name": "A", "value": "1"}]})
    await home.until(STATEFUL_SETS, lambda found: "A" in _variables_of(found))
    await home.client.delete(SECRETS, "demo-token", namespace=home.namespace)
    await home.until(COMPUTE_DOCUMENTS, lambda one: condition_of(one, "Stalled")["status"] == "False")


@pytest.mark.usefixtures("operator")
async def test_a_compute_is_suspended_whatever_hinders_it(home: Home):
    await home.make()
    await home.until_told("StatefulSetNotReady")
    await home.spoil_token()
    await home.change({"suspend": True, "labels": {"team": "not a value!"}})
    await home.until(STATEFUL_SETS, lambda found: found["spec"]["replicas"] == 0)
    compute = await home.until_told("Suspended")
    assert condition_of(compute, "Suspended")["status"] == "True"


def _variables_of(stateful_set: Document) -> list[str]:
    return [one["name"] for one in stateful_set["spec"]["template"]["spec"]["containers"][0]["env"]]


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


NO_OWNER: Document = {"metadata": {"ownerReferences": None}}


@pytest.mark.usefixtures("operator")
@pytest.mark.parametrize("kind", [STATEFUL_SETS, SERVICES], ids=lambda kind: kind.name)
async def test_what_somebody_took_from_its_compute_is_taken_back(home: Home, kind: Kind[Any]):
    await home.make()
    await home.until_told("StatefulSetNotReady")
    await home.client.patch(kind, "demo", NO_OWNER, namespace=home.namespace)
    compute = await home.get(COMPUTE_DOCUMENTS)
    found = await home.until(kind, lambda one: one["metadata"].get("ownerReferences"))
    assert [owner["uid"] for owner in found["metadata"]["ownerReferences"]] == [compute["metadata"]["uid"]]
    assert condition_of(await home.get(COMPUTE_DOCUMENTS), "Stalled")["status"] == "False"


@pytest.mark.parametrize("kind", [STATEFUL_SETS, SERVICES], ids=lambda kind: kind.name)
async def test_what_an_earlier_compute_left_to_nobody_is_the_next_ones(home: Home, kind: Kind[Any]):
    async with operating(home.client):
        await home.make()
        await home.until_told("StatefulSetNotReady")
    left = await home.client.patch(kind, "demo", NO_OWNER, namespace=home.namespace)
    named = {COMPUTE_DOCUMENTS: "demo", STATEFUL_SETS: "demo", SERVICES: "demo", SECRETS: "demo-token"}
    for one in named.keys() - {kind}:
        with suppress(NotFound):
            await home.client.delete(one, named[one], namespace=home.namespace)
    async with operating(home.client):
        await home.make()
        compute = await home.until_told("StatefulSetNotReady")
    found = await home.get(kind)
    assert found["metadata"]["uid"] == left["metadata"]["uid"]
    assert [owner["uid"] for owner in found["metadata"]["ownerReferences"]] == [compute["metadata"]["uid"]]


@pytest.mark.usefixtures("operator")
async def test_a_token_that_is_nobodys_is_told_with_the_way_out(home: Home, operator: ComputeOperator):
    """The operator may make Secrets and not change them."""
    await home.make()
    await home.until_told("StatefulSetNotReady")
    await home.client.patch(SECRETS, "demo-token", NO_OWNER, namespace=home.namespace)
    await look_again(operator)
    compute = await home.until_told("NameTaken")
    message = condition_of(compute, "Stalled")["message"]
    assert message == (
        "Secret demo-token was made for a Compute of this name and is nobody's now; delete it, and another is made"
    )
    await home.client.delete(SECRETS, "demo-token", namespace=home.namespace)
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


async def test_a_pod_with_our_labels_that_the_set_does_not_manage_says_nothing(home: Home, operator: ComputeOperator):
    await home.make()
    await home.until_told("StatefulSetNotReady")
    waiting = {"reason": "InvalidImageName", "message": "that is no image"}
    container = {"name": "server", "state": {"waiting": waiting}, "ready": False, "restartCount": 0}
    pod = await home.tell_pod(
        is_owned=False, phase="Pending", containerStatuses=[container | {"image": "A!", "imageID": ""}]
    )
    await home.tell_set()
    seen = ObjectKey(home.namespace, "demo-0")
    await until(lambda: (found := operator.watched.pods.get(seen)) and found.containers)
    await home.until(COMPUTE_DOCUMENTS, lambda one: "no pod has been made yet" in condition_of(one, "Ready")["message"])
    await look_again(operator)
    assert condition_of(await home.get(COMPUTE_DOCUMENTS), "Ready")["reason"] == "StatefulSetNotReady"
    assert not pod["metadata"].get("ownerReferences")


@pytest.mark.usefixtures("operator")
@pytest.mark.parametrize(
    ("spec", "message", "reason"),
    [
        ({"tls": {"secretName": "cert"}}, 'failed for volume "tls" : secret "cert" not found', "TlsSecretMissing"),
        ({"sharedMemory": {"claimName": "c"}}, 'failed for volume "shared" : no such server', "VolumeFailed"),
    ],
    ids=["certificate", "claim"],
)
async def test_a_volume_that_cannot_be_mounted_is_told(home: Home, spec: Document, message: str, reason: str):
    await home.make(spec=spec)
    await home.until_told("StatefulSetNotReady")
    scheduled = {"type": "PodScheduled", "status": "True"}
    pod = await home.tell_pod(phase="Pending", volumes=[{"name": "v", "emptyDir": {}}], conditions=[scheduled])
    await home.tell_event(pod, "FailedMount", f"MountVolume.SetUp {message}")
    await home.tell_set()
    compute = await home.until_told(reason)
    assert message in condition_of(compute, "Ready")["message"]
    assert condition_of(compute, "Stalled")["status"] == "False"


async def test_a_namespace_that_refuses_pods_with_more_rights_than_they_need_gets_others(
    home: Home, operator: ComputeOperator
):
    await home.make()
    await home.until_told("StatefulSetNotReady")
    stateful_set = await home.get(STATEFUL_SETS)
    assert not _rights_of(stateful_set)
    words = 'pods "demo-0" is forbidden: violates PodSecurity "restricted:latest": runAsNonRoot != true'
    await home.tell_event(stateful_set, "FailedCreate", words, STATEFUL_SETS)
    confined = await home.until(STATEFUL_SETS, _rights_of)
    await look_again(operator)
    assert _rights_of(await home.get(STATEFUL_SETS)) == _rights_of(confined) == {"runAsNonRoot", "seccompProfile"}
    await home.change({"image": "other"})
    changed = await home.until(STATEFUL_SETS, lambda found: found["metadata"]["generation"] > 2)
    assert _rights_of(changed), "what was learnt outlasts a change"


def _rights_of(stateful_set: Document) -> set[str]:
    return set(stateful_set["spec"]["template"]["spec"].get("securityContext") or {})


@pytest.mark.usefixtures("operator")
async def test_a_directory_of_the_node_that_is_not_allowed_is_refused(home: Home):
    await home.make(spec={"sharedMemory": {"hostPath": "/etc"}})
    compute = await home.until_told("HostPathNotAllowed")
    assert condition_of(compute, "Stalled")["status"] == "True"
    with pytest.raises(NotFound):
        await home.get(STATEFUL_SETS)
    await home.change({"sharedMemory": {"hostPath": "/run/kpu/team"}})
    await home.until_told("StatefulSetNotReady")


@pytest.mark.usefixtures("operator")
async def test_what_others_say_on_a_compute_stays(home: Home):
    await home.make()
    compute = await home.until_told("StatefulSetNotReady")
    theirs = {"type": "Audited", "status": "True", "reason": "Seen", "message": "by hand"}
    theirs |= {"lastTransitionTime": "2026-01-01T00:00:00Z"}
    added = [{"op": "add", "path": "/status/conditions/-", "value": theirs}]
    await home.client.patch(
        COMPUTE_DOCUMENTS,
        "demo",
        added,
        namespace=home.namespace,
        patch_type=PatchType.JSON,
        subresource="status",
    )
    await home.tell_set(readyReplicas=1, updatedReplicas=1)
    compute = await home.until_told("StatefulSetReady")
    assert condition_of(compute, "Audited") == theirs


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


async def until_gone(api: Client, kind: Kind[Any], key: ObjectKey) -> None:
    async with asyncio.timeout(PATIENCE_S):
        while True:
            try:
                await api.get(kind, key.name, namespace=key.namespace)
            except NotFound:
                return
            await asyncio.sleep(0.05)


async def until_served(api: Client, kind: Kind[Any]) -> None:
    async with asyncio.timeout(PATIENCE_S):
        while True:
            try:
                await api.list(kind)
                return
            except NotFound:
                await asyncio.sleep(0.05)


async def make_gateway(home: Home) -> None:
    listeners = [{"name": "plain", "port": 80, "protocol": "HTTP"}, {"name": "tls", "port": 443, "protocol": "HTTPS"}]
    gate = {"metadata": {"name": "gate"}, "spec": {"listeners": listeners}}
    gate |= {"apiVersion": GATEWAYS.api_version, "kind": "Gateway", "status": {"addresses": [{"value": "192.0.2.7"}]}}
    await home.client.create(GATEWAYS, gate, namespace=home.namespace)


async def take_route(home: Home, parent: Document, status: str = "True") -> None:
    """As the Gateway's controller would."""
    await home.until(GRPC_ROUTES, lambda _: True)
    condition = {"type": "Accepted", "status": status, "reason": "Told", "message": "by hand"}
    told = {"parents": [{"parentRef": parent, "controllerName": "test", "conditions": [condition]}]}
    await home.client.patch(GRPC_ROUTES, "demo", {"status": told}, namespace=home.namespace)


PARENT = {"name": "gate", "sectionName": "plain"}


async def until_routed(home: Home, reason: str) -> Document:
    return await home.until(COMPUTE_DOCUMENTS, lambda one: condition_of(one, "Routed").get("reason") == reason)


class Sighted(Client):
    """That may read Gateways, or not."""

    may_read = True

    async def get(self, kind: Kind[Any], name: str, **how: Any) -> Any:
        if kind is GATEWAYS and not self.may_read:
            raise Forbidden("no", verb="get", target=f"gateways {name}", status=403, reason="Forbidden")
        return await super().get(kind, name, **how)


@pytest.mark.usefixtures("gateway_api")
async def test_a_route_is_made_told_of_and_removed_again(engine: Engine, home: Home):
    async with Sighted(find_access(engine.kubeconfig)) as client, operating(client) as operator:
        await make_gateway(home)
        await home.make(spec={"route": {"parentRefs": [PARENT]}})
        compute = await until_routed(home, "RoutePending")
        assert all(one["value"] != "192.0.2.7" for one in compute["status"]["addresses"])
        await take_route(home, PARENT, "False")
        assert "by hand" in condition_of(await until_routed(home, "RouteNotAccepted"), "Routed")["message"]

        client.may_read = False
        await take_route(home, PARENT)
        compute = await until_routed(home, "GatewayNotRead")
        assert condition_of(compute, "Ready")["reason"] == "StatefulSetNotReady"
        client.may_read = True
        await look_again(operator)

        compute = await until_routed(home, "RouteAccepted")
        assert condition_of(compute, "Routed")["status"] == "True"
        assert compute["status"]["addresses"][-1] == {"type": "IPAddress", "value": "192.0.2.7", "port": 80}
        assert [one.get("port") for one in compute["status"]["addresses"]].count(443) == 0
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


class BriefTerm:
    """Of a leader whose time is over once it has asked so often whether it may write."""

    epoch = 1
    is_leader = True

    def __init__(self, often: int) -> None:
        self.left = often

    def may_write(self) -> bool:
        self.left -= 1
        return self.left >= 0

    def may_read_state(self) -> bool:
        return True

    async def gained(self) -> None:
        return None

    async def lost(self) -> None:
        await asyncio.Event().wait()

    async def run(self) -> None:
        return None


async def test_a_leader_writes_nothing_more_once_its_time_is_over(engine: Engine, home: Home):
    await home.make()
    term = BriefTerm(often=2)  # once before it looks, once for its first write
    async with Writes(engine) as witness, operating(witness, term):
        await until(lambda: term.left < -1)
        assert witness.noted == ["create Secret"]


async def test_a_compute_that_is_held_while_it_is_deleted_is_not_called_ready(home: Home):
    async with operating(home.client):
        await home.make(finalizers=["example.com/other"])
        await home.until_told("StatefulSetNotReady")
        await home.tell_set(readyReplicas=1, updatedReplicas=1)
        await home.until_told("StatefulSetReady")
        await home.client.delete(COMPUTE_DOCUMENTS, "demo", namespace=home.namespace)
        compute = await home.until_told("Deleting")
        assert condition_of(compute, "Ready")["status"] == "False"
    await let_go(home)


@pytest.mark.parametrize("grace", ["99999999999999999999", "9" * 5000], ids=["too long", "far too long"])
async def test_a_grace_that_no_pod_can_have_holds_no_compute(home: Home, grace: str):
    annotations = {"compute.kpu.dev/deletion-grace-seconds": grace}
    async with operating(home.client):
        await home.make(finalizers=["compute.kpu.dev/deletion"], annotations=annotations)
        await home.until_told("StatefulSetNotReady")
        await home.client.delete(COMPUTE_DOCUMENTS, "demo", namespace=home.namespace)
        await until_gone(home.client, COMPUTE_DOCUMENTS, ObjectKey(home.namespace, "demo"))


async def test_a_compute_is_held_until_its_set_has_no_pod_and_knows_that_none_is_wanted(home: Home):
    annotations = {"compute.kpu.dev/deletion-grace-seconds": "5"}
    async with operating(home.client) as operator:
        await home.make(finalizers=["compute.kpu.dev/deletion"], annotations=annotations)
        await home.until_told("StatefulSetNotReady")
        await home.tell_pod(phase="Running")
        await until(lambda: len(operator.watched.pods))
        await home.client.delete(COMPUTE_DOCUMENTS, "demo", namespace=home.namespace)
        await until_gone(home.client, PODS, ObjectKey(home.namespace, "demo-0"))
        await home.until(STATEFUL_SETS, lambda one: one["spec"]["replicas"] == 0)
        await asyncio.sleep(0.3)
        assert (await home.get(COMPUTE_DOCUMENTS))["metadata"]["finalizers"] == ["compute.kpu.dev/deletion"]
        await home.tell_set(replicas=0)
        await until_gone(home.client, COMPUTE_DOCUMENTS, ObjectKey(home.namespace, "demo"))


class Refusing(Client):
    """That may not delete pods."""

    async def delete(self, kind: Kind[Any], name: str, **how: Any) -> None:
        if kind is PODS:
            raise Forbidden("no", verb="delete", target=f"pods {name}", status=403, reason="Forbidden")
        await super().delete(kind, name, **how)


async def test_a_pod_that_may_not_be_ended_early_holds_no_compute(engine: Engine, home: Home):
    annotations = {"compute.kpu.dev/deletion-grace-seconds": "5"}
    async with Refusing(find_access(engine.kubeconfig)) as refusing, operating(refusing) as operator:
        await home.make(finalizers=["compute.kpu.dev/deletion"], annotations=annotations)
        await home.until_told("StatefulSetNotReady")
        await home.tell_pod(phase="Running")
        await until(lambda: len(operator.watched.pods))
        await home.client.delete(COMPUTE_DOCUMENTS, "demo", namespace=home.namespace)
        await until_gone(home.client, COMPUTE_DOCUMENTS, ObjectKey(home.namespace, "demo"))


async def let_go(home: Home) -> None:
    nothing = [{"op": "remove", "path": "/metadata/finalizers"}]
    await home.client.patch(COMPUTE_DOCUMENTS, "demo", nothing, namespace=home.namespace, patch_type=PatchType.JSON)


async def test_an_operator_that_starts_late_lets_go_of_what_was_deleted_meanwhile(home: Home):
    grace = {"compute.kpu.dev/deletion-grace-seconds": "5"}
    await home.make(finalizers=["compute.kpu.dev/deletion", "example.com/other"], annotations=grace)
    await home.client.delete(COMPUTE_DOCUMENTS, "demo", namespace=home.namespace)
    async with operating(home.client):
        left = await home.until(COMPUTE_DOCUMENTS, lambda one: len(one["metadata"]["finalizers"]) == 1)
        assert left["metadata"]["finalizers"] == ["example.com/other"]
    await let_go(home)
    with pytest.raises(NotFound):
        await home.get(STATEFUL_SETS)
