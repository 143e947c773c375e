"""What the server adds to a pod and demands of a namespace, and the order in which all are asked."""

import pytest

from tessera.embedded.admitting import Admission, Answered, Endpoint
from tessera.embedded.admitting.priorities import CLASSES
from tessera.embedded.admitting.service_accounts import MOUNTED_AT
from tessera.embedded.refusals import ApiRefusal
from tests.unit.embedded.admitting.requesting import (
    CONFIG_MAPS,
    NAMESPACES,
    NODES,
    PODS,
    Cluster,
    config_map,
    creation,
    pod,
    request,
    update,
)

pytestmark = pytest.mark.asyncio


@pytest.fixture
def cluster():
    return Cluster()


@pytest.fixture
def admission(cluster):
    async def never_called(endpoint: Endpoint, body: bytes, timeout_s: float) -> Answered:
        raise AssertionError(f"no webhook is registered at {endpoint} for {body} within {timeout_s}")

    return Admission(cluster, lambda *_: None, call=never_called, suffix=lambda: "abcde")


async def refusal_of(asked):
    with pytest.raises(ApiRefusal) as refusal:
        await asked
    return refusal.value


async def test_what_needs_nothing_is_left_as_it_is(admission):
    document = config_map(a="1")
    admitted = await admission.mutate(creation(CONFIG_MAPS, document))
    assert (admitted.object, list(admitted.warnings)) == (document, [])


async def test_a_namespace_must_be_there(admission):
    refusal = await refusal_of(admission.mutate(creation(CONFIG_MAPS, config_map(), namespace="absent")))
    assert (refusal.code, refusal.reason, refusal.message) == (404, "NotFound", 'namespaces "absent" not found')


async def test_a_namespace_must_not_be_going(admission, cluster):
    cluster.add("namespaces", {"metadata": {"name": "going", "deletionTimestamp": "2026-01-02T03:04:05Z"}})
    refusal = await refusal_of(admission.mutate(creation(CONFIG_MAPS, config_map(), namespace="going")))
    assert refusal.code == 403
    assert refusal.message == (
        'configmaps "settings" is forbidden: unable to create new content in namespace going because it is being '
        "terminated"
    )
    (cause,) = refusal.details["causes"]
    assert (cause["reason"], cause["field"]) == ("NamespaceTerminating", "metadata.namespace")
    await admission.mutate(update(CONFIG_MAPS, config_map(), config_map(a="1"), namespace="going"))


async def test_what_lives_in_no_namespace_needs_none(admission):
    await admission.mutate(creation(NODES, {"metadata": {"name": "a"}}))


@pytest.mark.parametrize("name", ["default", "kube-system", "kube-public"])
async def test_some_namespaces_are_not_deleted(admission, name):
    deletion = request("DELETE", NAMESPACES, old_object={"metadata": {"name": name}})
    assert (await refusal_of(admission.validate(deletion))).code == 403
    other = request("DELETE", NAMESPACES, old_object={"metadata": {"name": "team"}})
    assert await admission.validate(other) == []


async def admitted_spec(admission, **spec):
    document = pod(**spec)
    before = repr(document)
    admitted = await admission.mutate(creation(PODS, document))
    assert repr(document) == before
    return admitted.object["spec"]


async def test_a_pod_without_a_class_has_no_priority(admission):
    spec = await admitted_spec(admission)
    assert (spec["priority"], spec["preemptionPolicy"]) == (0, "PreemptLowerPriority")
    assert "priorityClassName" not in spec


async def test_a_class_is_resolved(admission, cluster):
    cluster.add(CLASSES, {"metadata": {"name": "high"}, "value": 1000, "preemptionPolicy": "Never"})
    spec = await admitted_spec(admission, priorityClassName="high")
    assert (spec["priority"], spec["preemptionPolicy"]) == (1000, "Never")


async def test_a_class_may_be_the_default(admission, cluster):
    cluster.add(CLASSES, {"metadata": {"name": "usual"}, "value": 5, "globalDefault": True})
    spec = await admitted_spec(admission)
    assert (spec["priority"], spec["priorityClassName"]) == (5, "usual")


async def test_the_classes_of_the_system_are_always_there(admission):
    assert (await admitted_spec(admission, priorityClassName="system-node-critical"))["priority"] == 2_000_001_000


async def test_a_class_that_is_not_there_is_refused(admission):
    refusal = await refusal_of(admitted_spec(admission, priorityClassName="absent"))
    assert refusal.message == 'pods "worker" is forbidden: no PriorityClass with name absent was found'
    assert refusal.code == 403


async def test_a_priority_of_ones_own_is_refused(admission):
    refusal = await refusal_of(admitted_spec(admission, priority=7))
    assert "the integer value of priority (7) must not be provided in pod spec" in refusal.message
    assert (await admitted_spec(admission, priority=0))["priority"] == 0


async def test_a_pod_has_the_account_default_and_its_token(admission):
    init = [{"name": "first"}]
    spec = await admitted_spec(admission, initContainers=init, volumes=[{"name": "own", "emptyDir": {}}])
    assert (spec["serviceAccountName"], spec["serviceAccount"]) == ("default", "default")
    mount = {"name": "kube-api-access-abcde", "readOnly": True, "mountPath": MOUNTED_AT}
    assert spec["containers"][0]["volumeMounts"] == [mount]
    assert spec["initContainers"][0]["volumeMounts"] == [mount]
    assert [volume["name"] for volume in spec["volumes"]] == ["own", "kube-api-access-abcde"]
    sources = spec["volumes"][1]["projected"]["sources"]
    assert sources[0] == {"serviceAccountToken": {"expirationSeconds": 3607, "path": "token"}}
    assert [next(iter(source)) for source in sources[1:]] == ["configMap", "downwardAPI"]


async def test_a_container_that_mounts_its_own_there_is_left_alone(admission):
    own = {"name": "main", "volumeMounts": [{"name": "own", "mountPath": MOUNTED_AT}]}
    spec = await admitted_spec(admission, containers=[own])
    assert spec["containers"] == [own]
    assert "volumes" not in spec


@pytest.mark.parametrize(
    ("of_pod", "of_account", "is_mounted"),
    [(None, None, True), (False, None, False), (None, False, False), (True, False, True), (False, True, False)],
)
async def test_pod_and_account_say_whether_the_token_is_mounted(admission, cluster, of_pod, of_account, is_mounted):
    cluster.add("serviceaccounts", {"metadata": {"name": "own"}, "automountServiceAccountToken": of_account})
    spec = await admitted_spec(admission, serviceAccountName="own", automountServiceAccountToken=of_pod)
    assert ("volumes" in spec) is is_mounted


async def test_an_account_lends_its_secrets_for_pulling(admission, cluster):
    cluster.add("serviceaccounts", {"metadata": {"name": "own"}, "imagePullSecrets": [{"name": "key"}]})
    assert (await admitted_spec(admission, serviceAccountName="own"))["imagePullSecrets"] == [{"name": "key"}]
    kept = await admitted_spec(admission, serviceAccountName="own", imagePullSecrets=[{"name": "mine"}])
    assert kept["imagePullSecrets"] == [{"name": "mine"}]


async def test_an_account_that_is_not_there_is_refused(admission):
    refusal = await refusal_of(admitted_spec(admission, serviceAccountName="absent"))
    why = 'error looking up service account team/absent: serviceaccount "absent" not found'
    assert (refusal.code, refusal.message) == (403, f'pods "worker" is forbidden: {why}')


async def test_an_update_of_a_pod_is_not_given_anything(admission):
    admitted = await admission.mutate(update(PODS, pod(), pod()))
    assert admitted.object == pod()
