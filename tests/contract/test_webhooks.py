"""Admission webhooks: what is asked of them, and what their answers do."""

import threading

import pytest

from tests.contract.api import MERGE_PATCH
from tests.contract.objects import pod
from tests.contract.refusals import refused
from tests.contract.waiting import eventually
from tests.contract.webhooks import ALLOWED, Webhooks, WebhookServer, patch_with

pytestmark = pytest.mark.contract(area="Admission webhooks", needed_by="admission, HAMi clients, GpuClaim")

GPU_POD = {"resources": {"limits": {"nvidia.com/gpu": "1"}}}
ASKS_FOR_A_GPU = "object.spec.containers.exists(c, has(c.resources.limits) && 'nvidia.com/gpu' in c.resources.limits)"
SET_SCHEDULER = {"op": "replace", "path": "/spec/schedulerName", "value": "tessera"}


@pytest.fixture(scope="package")
def server(engine, tmp_path_factory):
    with WebhookServer(engine.callback_host, tmp_path_factory.mktemp("webhooks")).running() as server:
        yield server


@pytest.fixture
def webhooks(api, server, namespace):
    webhooks = Webhooks(api, server, namespace)
    yield webhooks
    webhooks.remove()


@pytest.mark.contract(promise="A mutating webhook's JSON patch is what is stored")
def test_a_mutating_webhook_changes_what_is_stored(webhooks, pods):
    variable = {"name": "CUDA_VISIBLE_DEVICES", "value": "0,1"}
    env = {"op": "add", "path": "/spec/containers/0/env", "value": [variable]}
    webhooks.add("Mutating", lambda _: patch_with(env, SET_SCHEDULER))
    pods.create(pod("worker"))
    stored = pods.get("worker")["spec"]
    assert stored["containers"][0]["env"] == [variable]
    assert stored["schedulerName"] == "tessera"


@pytest.mark.contract(promise="A webhook is told who does what to which object, and how it was before")
def test_a_webhook_is_told_what_is_going_on(webhooks, api_as, namespace):
    requests = webhooks.add("Validating", lambda _: ALLOWED)
    pods = api_as("alice", ["system:masters"]).collection("pods", namespace)
    pods.create(pod("worker"))
    pods.patch("worker", MERGE_PATCH, {"metadata": {"labels": {"a": "1"}}})
    creation, update = requests
    assert (creation["operation"], creation["name"], creation["namespace"]) == ("CREATE", "worker", namespace)
    assert creation["kind"] == {"group": "", "version": "v1", "kind": "Pod"}
    assert creation["resource"] == {"group": "", "version": "v1", "resource": "pods"}
    assert creation["userInfo"]["username"] == "alice"
    assert (creation["oldObject"], creation["dryRun"]) == (None, False)
    assert update["operation"] == "UPDATE"
    assert "labels" not in update["oldObject"]["metadata"]
    assert update["object"]["metadata"]["labels"] == {"a": "1"}


@pytest.mark.contract(promise="Validating webhooks see what mutating ones made of it")
def test_validating_comes_after_mutating(webhooks, pods):
    webhooks.add("Mutating", lambda _: patch_with(SET_SCHEDULER))
    requests = webhooks.add("Validating", lambda _: ALLOWED)
    pods.create(pod("worker"))
    assert requests[0]["object"]["spec"]["schedulerName"] == "tessera"


@pytest.mark.contract(promise="Warnings of a webhook become Warning headers")
def test_warnings_reach_the_client(api, webhooks, pods):
    webhooks.add("Validating", lambda _: ALLOWED | {"warnings": ["gpumem has no effect without gpu"]})
    answer = api.send("POST", pods.path, pod("worker"))
    assert answer.headers["Warning"] == '299 - "gpumem has no effect without gpu"'


@pytest.mark.contract(promise="A denial that names no code is 400; its message names the webhook")
@pytest.mark.parametrize("kind", ["Mutating", "Validating"])
def test_a_denial_stops_the_request(webhooks, pods, namespace, kind):
    webhooks.add(kind, lambda _: {"allowed": False, "status": {"message": "no card has 24000 MiB"}})
    with refused(400) as refusal:
        pods.create(pod("worker"))
    denied = f'admission webhook "{kind.lower()}0.{namespace}.example" denied the request: no card has 24000 MiB'
    assert refusal.value.message == denied
    assert not pods.exists("worker")


@pytest.mark.contract(promise="A denial may choose its code and reason")
def test_a_denial_chooses_its_code(webhooks, pods):
    status = {"code": 422, "reason": "Invalid", "message": "not whole"}
    webhooks.add("Validating", lambda _: {"allowed": False, "status": status})
    with refused(422, "Invalid") as refusal:
        pods.create(pod("worker"))
    assert refusal.value.message.endswith("denied the request: not whole")


@pytest.mark.contract(promise="matchConditions decide by CEL which requests are sent")
def test_a_match_condition_spares_other_pods(webhooks, pods):
    condition = {"name": "asks-for-a-gpu", "expression": ASKS_FOR_A_GPU}
    requests = webhooks.add("Mutating", lambda _: patch_with(SET_SCHEDULER), matchConditions=[condition])
    pods.create(pod("plain"))
    pods.create(pod("gpu", container=GPU_POD))
    assert [request["name"] for request in requests] == ["gpu"]
    assert pods.get("gpu")["spec"]["schedulerName"] == "tessera"


@pytest.mark.contract(promise="objectSelector decides by labels which requests are sent")
def test_an_object_selector_spares_other_pods(webhooks, pods):
    expression = {"key": "hami.io/webhook", "operator": "NotIn", "values": ["ignore"]}
    requests = webhooks.add("Validating", lambda _: ALLOWED, objectSelector={"matchExpressions": [expression]})
    pods.create(pod("ignored", labels={"hami.io/webhook": "ignore"}))
    pods.create(pod("seen"))
    assert [request["name"] for request in requests] == ["seen"]


@pytest.mark.contract(promise="namespaceSelector decides by the namespace's labels which requests are sent")
def test_a_namespace_selector_follows_the_labels_of_the_namespace(api, webhooks, pods, namespace):
    selector = {"matchLabels": {"kubernetes.io/metadata.name": namespace}}
    selector |= {"matchExpressions": [{"key": "contract.example/skip", "operator": "DoesNotExist"}]}
    requests = webhooks.add("Validating", lambda _: ALLOWED, namespaceSelector=selector)

    def is_called():
        requests.clear()
        pods.create(pod("worker"), dryRun="All")
        return bool(requests)

    assert is_called()
    api.collection("namespaces").patch(namespace, MERGE_PATCH, {"metadata": {"labels": {"contract.example/skip": ""}}})
    eventually(lambda: not is_called())


def nowhere(engine):
    return {"url": f"https://{engine.callback_host}:1/nobody-listens"}


@pytest.mark.contract(promise="failurePolicy Fail: a webhook that cannot be reached stops the request with 500")
def test_a_webhook_that_must_answer_stops_the_request(engine, webhooks, pods):
    webhooks.add("Mutating", lambda _: ALLOWED, clientConfig=nowhere(engine), failurePolicy="Fail")
    with refused(500, "InternalError") as refusal:
        pods.create(pod("worker"))
    assert "failed calling webhook" in refusal.value.message
    assert not pods.exists("worker")


@pytest.mark.contract(promise="failurePolicy Ignore: a webhook that cannot be reached is passed over")
def test_a_webhook_that_need_not_answer_is_passed_over(engine, webhooks, pods):
    webhooks.add("Mutating", lambda _: ALLOWED, clientConfig=nowhere(engine), failurePolicy="Ignore")
    pods.create(pod("worker"))
    assert pods.exists("worker")


@pytest.mark.contract(promise="A webhook that does not answer within timeoutSeconds counts as failed")
def test_a_webhook_has_so_much_time_and_no_more(webhooks, pods):
    released = threading.Event()

    def answer_late(_):
        released.wait()
        return ALLOWED

    webhooks.add("Mutating", answer_late, timeoutSeconds=1, failurePolicy="Fail")
    with refused(500, "InternalError") as refusal:
        pods.create(pod("worker"))
    released.set()
    assert "failed calling webhook" in refusal.value.message


@pytest.mark.contract(promise="A dry run reaches webhooks without side effects, and says that it is one")
def test_a_dry_run_reaches_a_webhook(webhooks, pods):
    requests = webhooks.add("Mutating", lambda _: patch_with(SET_SCHEDULER))
    imagined = pods.create(pod("worker"), dryRun="All")
    assert requests[0]["dryRun"] is True
    assert imagined["spec"]["schedulerName"] == "tessera"


@pytest.mark.contract(promise="Rules say for which operations a webhook is called")
def test_a_webhook_is_called_for_its_operations_alone(webhooks, pods):
    rule = {"operations": ["UPDATE"], "apiGroups": [""], "apiVersions": ["v1"], "resources": ["pods"]}
    requests = webhooks.add("Validating", lambda _: ALLOWED, rules=[rule])
    pods.create(pod("worker"))
    pods.patch("worker", MERGE_PATCH, {"metadata": {"labels": {"a": "1"}}})
    assert [request["operation"] for request in requests] == ["UPDATE"]
