"""Webhooks over real TLS on loopback: what they are asked, what their answers do, what becomes of their failures."""

import base64
import json
import ssl
import threading

import pytest

from tessera.embedded.admitting import Answered, CallFailed, Endpoint, post
from tessera.embedded.admitting.registrations import MUTATING, VALIDATING
from tessera.embedded.admitting.webhooks import Webhooks
from tessera.embedded.refusals import ApiRefusal
from testbed.certificates import Authority
from tests.https_server import HttpsServer, Said
from tests.unit.embedded.admitting.requesting import (
    CONFIG_MAPS,
    PODS,
    Cluster,
    Person,
    config_map,
    creation,
    pod,
    request,
    update,
)

pytestmark = pytest.mark.asyncio

ALLOWED = {"allowed": True}
SET_SCHEDULER = {"op": "add", "path": "/spec/schedulerName", "value": "tessera"}


def patch_with(*operations):
    patch = base64.b64encode(json.dumps(operations).encode()).decode()
    return ALLOWED | {"patchType": "JSONPatch", "patch": patch}


class Server:
    """Answers each path with what was set for it, and remembers what it was asked."""

    def __init__(self, directory):
        authority = Authority(directory, "webhook-ca")
        serving = authority.issue("webhook", "webhook", reachable_at=["127.0.0.1", "hook.team.svc"])
        context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        context.load_cert_chain(serving.certificate, serving.key)
        self.authority = authority.files.certificate.read_bytes()
        self.https = HttpsServer("127.0.0.1", context, self._answer)
        self.answers = {}
        self.asked = []

    def _answer(self, path, body):
        answer = self.answers[path]
        if isinstance(answer, Said):
            return answer
        review = json.loads(body)
        asked = review["request"]
        self.asked.append((path, asked))
        response = {"uid": asked["uid"], **(dict(answer) if isinstance(answer, dict) else answer(asked))}
        said = {"kind": "AdmissionReview", "apiVersion": "admission.k8s.io/v1", "response": response}
        return Said(200, json.dumps(said).encode())


@pytest.fixture(scope="module")
def running(tmp_path_factory):
    server = Server(tmp_path_factory.mktemp("webhooks"))
    with server.https.running():
        yield server


@pytest.fixture
def server(running):
    running.answers, running.asked = {}, []
    return running


class Hooks:
    """Webhooks that are registered, and their server."""

    def __init__(self, server):
        self.server = server
        self.cluster = Cluster()
        self.services = {}
        self.webhooks = Webhooks(self.cluster, post, lambda *service: self.services.get(service))

    def add(self, kind, name, answer, **fields):
        self.server.answers[f"/{name}"] = answer
        rule = {"operations": ["*"], "apiGroups": [""], "apiVersions": ["v1"], "resources": ["pods"]}
        bundle = base64.b64encode(self.server.authority).decode()
        hook = {
            "name": f"{name}.example",
            "clientConfig": {"url": f"{self.server.https.url}/{name}", "caBundle": bundle},
            "rules": [rule],
            "sideEffects": "None",
            "admissionReviewVersions": ["v1"],
        }
        self.cluster.add(kind, {"metadata": {"name": name}, "webhooks": [hook | fields]})

    async def refusal(self, asked=None):
        with pytest.raises(ApiRefusal) as refusal:
            await self.webhooks.validate(asked or creation(PODS, pod()))
        return refusal.value


@pytest.fixture
def hooks(server):
    return Hooks(server)


async def test_a_patch_is_what_becomes_of_the_object(hooks):
    hooks.add(MUTATING, "set", patch_with(SET_SCHEDULER))
    document = pod()
    admitted = await hooks.webhooks.mutate(creation(PODS, document))
    assert admitted.object == pod(schedulerName="tessera")
    assert document == pod()


async def test_each_mutating_webhook_sees_what_the_one_before_it_made(hooks):
    hooks.add(MUTATING, "b-second", ALLOWED)
    hooks.add(MUTATING, "a-first", patch_with(SET_SCHEDULER))
    await hooks.webhooks.mutate(creation(PODS, pod()))
    assert [path for path, _ in hooks.server.asked] == ["/a-first", "/b-second"]
    assert hooks.server.asked[1][1]["object"]["spec"]["schedulerName"] == "tessera"


async def test_a_webhook_is_told_what_is_going_on(hooks):
    hooks.add(VALIDATING, "see", ALLOWED)
    alice = Person("alice", "u-1", ("system:masters",), {"node": ("a",)})
    await hooks.webhooks.validate(
        update(PODS, pod(), pod(a="b"), user=alice, dry_run=True, options={"dryRun": ["All"]})
    )
    kind = {"group": "", "version": "v1", "kind": "Pod"}
    resource = {"group": "", "version": "v1", "resource": "pods"}
    assert hooks.server.asked == [
        (
            "/see",
            {
                "uid": "a-uid",
                "kind": kind,
                "resource": resource,
                "requestKind": kind,
                "requestResource": resource,
                "name": "worker",
                "namespace": "team",
                "operation": "UPDATE",
                "userInfo": {
                    "username": "alice",
                    "uid": "u-1",
                    "groups": ["system:masters"],
                    "extra": {"node": ["a"]},
                },
                "object": pod(a="b"),
                "oldObject": pod(),
                "dryRun": True,
                "options": {"kind": "UpdateOptions", "apiVersion": "meta.k8s.io/v1", "dryRun": ["All"]},
            },
        )
    ]


async def test_what_is_sent_to_a_subresource_has_its_own_kind(hooks):
    rule = {"operations": ["CREATE"], "apiGroups": [""], "apiVersions": ["v1"], "resources": ["pods/eviction"]}
    hooks.add(VALIDATING, "see", ALLOWED, rules=[rule])
    eviction = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": "worker"}}
    await hooks.webhooks.validate(creation(PODS, eviction, subresource="eviction"))
    (_, asked) = hooks.server.asked[0]
    assert asked["kind"] == {"group": "policy", "version": "v1", "kind": "Eviction"}
    assert (asked["resource"]["resource"], asked["subResource"], asked["oldObject"]) == ("pods", "eviction", None)


async def test_a_deletion_is_told_with_what_goes(hooks):
    hooks.add(VALIDATING, "see", ALLOWED)
    await hooks.webhooks.validate(request("DELETE", PODS, old_object=pod()))
    (_, asked) = hooks.server.asked[0]
    assert (asked["operation"], asked["object"], asked["oldObject"]) == ("DELETE", None, pod())


async def test_warnings_of_all_webhooks_are_handed_on(hooks):
    for name in ("a", "b"):
        hooks.add(VALIDATING, name, ALLOWED | {"warnings": [f"careful with {name}"]})
        hooks.add(MUTATING, name, ALLOWED | {"warnings": [f"careful with {name}"]})
    wanted = ["careful with a", "careful with b"]
    assert list(await hooks.webhooks.validate(creation(PODS, pod()))) == wanted
    assert list((await hooks.webhooks.mutate(creation(PODS, pod()))).warnings) == wanted


@pytest.mark.parametrize(
    ("status", "code", "reason", "why"),
    [
        ({"message": "no card has 24000 MiB"}, 400, "", ": no card has 24000 MiB"),
        ({"code": 422, "reason": "Invalid", "message": "not whole"}, 422, "Invalid", ": not whole"),
        ({"reason": "Forbidden"}, 400, "Forbidden", ": Forbidden"),
        ({"code": 200}, 400, "", " without explanation"),
        (None, 400, "", " without explanation"),
    ],
)
async def test_a_denial_stops_the_request(hooks, status, code, reason, why):
    hooks.add(VALIDATING, "no", {"allowed": False, "status": status})
    refusal = await hooks.refusal()
    assert (refusal.code, refusal.reason) == (code, reason)
    assert refusal.message == f'admission webhook "no.example" denied the request{why}'


async def test_a_denial_of_a_mutating_webhook_stops_the_request(hooks):
    hooks.add(MUTATING, "a-no", {"allowed": False})
    hooks.add(MUTATING, "b-never", ALLOWED)
    with pytest.raises(ApiRefusal):
        await hooks.webhooks.mutate(creation(PODS, pod()))
    assert [path for path, _ in hooks.server.asked] == ["/a-no"]


async def test_of_several_denials_the_first_counts(hooks):
    for name in ("b", "a"):
        hooks.add(VALIDATING, name, {"allowed": False})
    assert '"a.example"' in (await hooks.refusal()).message


@pytest.mark.parametrize(
    "fields",
    [
        {"rules": []},
        {"objectSelector": {"matchLabels": {"a": "1"}}},
        {"namespaceSelector": {"matchLabels": {"a": "1"}}},
        {"matchConditions": [{"name": "c", "expression": "object.metadata.name != 'worker'"}]},
        {"matchConditions": [{"name": "c", "expression": "object.absent"}], "failurePolicy": "Ignore"},
        {"matchConditions": [{"name": "c", "expression": "nobody"}], "failurePolicy": "Ignore"},
    ],
)
async def test_a_webhook_is_asked_only_about_what_concerns_it(hooks, fields):
    hooks.add(VALIDATING, "no", {"allowed": False}, **fields)
    assert await hooks.webhooks.validate(creation(PODS, pod())) == []
    assert await hooks.webhooks.validate(creation(CONFIG_MAPS, config_map())) == []
    assert hooks.server.asked == []


@pytest.mark.parametrize(("expression", "why"), [("object.absent", "no such key: absent"), ("nobody", "undeclared")])
async def test_a_condition_that_fails_is_a_refusal(hooks, expression, why):
    hooks.add(VALIDATING, "see", ALLOWED, matchConditions=[{"name": "c", "expression": expression}])
    refusal = await hooks.refusal()
    assert refusal.code == 403
    assert why in refusal.message
    assert hooks.server.asked == []


async def test_a_dry_run_needs_a_webhook_without_side_effects(hooks):
    hooks.add(VALIDATING, "see", ALLOWED, sideEffects="Some")
    refusal = await hooks.refusal(creation(PODS, pod(), dry_run=True))
    assert (refusal.code, refusal.message) == (400, 'admission webhook "see.example" does not support dry run')
    assert await hooks.webhooks.validate(creation(PODS, pod())) == []


NOWHERE = {"url": "https://127.0.0.1:1/nobody-listens"}
FAILURES = [
    ({}, Said(500, b"")),
    ({}, Said(200, b"no json")),
    ({}, Said(200, b'{"apiVersion": "admission.k8s.io/v1beta1", "response": {"uid": "a-uid", "allowed": true}}')),
    ({}, {"uid": "another", "allowed": True}),
    ({}, {}),
    ({"clientConfig": NOWHERE}, ALLOWED),
    ({"clientConfig": {"url": "http://127.0.0.1/plain"}}, ALLOWED),
    ({"clientConfig": {"service": {"namespace": "team", "name": "absent"}}}, ALLOWED),
]


@pytest.mark.parametrize(("fields", "answer"), FAILURES)
async def test_a_webhook_that_must_answer_and_does_not_stops_the_request(hooks, fields, answer):
    hooks.add(VALIDATING, "gone", answer, **fields)
    refusal = await hooks.refusal()
    assert (refusal.code, refusal.reason) == (500, "InternalError")
    assert refusal.message.startswith('Internal error occurred: failed calling webhook "gone.example": failed to call')


@pytest.mark.parametrize(("fields", "answer"), FAILURES)
async def test_a_webhook_that_need_not_answer_is_passed_over(hooks, fields, answer):
    hooks.add(VALIDATING, "gone", answer, failurePolicy="Ignore", **fields)
    hooks.add(MUTATING, "gone", answer, failurePolicy="Ignore", **fields)
    assert await hooks.webhooks.validate(creation(PODS, pod())) == []
    assert (await hooks.webhooks.mutate(creation(PODS, pod()))).object == pod()


@pytest.mark.parametrize(
    "answer",
    [
        patch_with({"op": "remove", "path": "/spec/absent"}),
        ALLOWED | {"patch": "AAAA", "patchType": "JSONPatch"},
        ALLOWED | {"patch": base64.b64encode(b"[]").decode(), "patchType": "Other"},
    ],
)
async def test_a_patch_that_does_not_apply_counts_as_a_failure(hooks, answer):
    hooks.add(MUTATING, "bad", answer)
    with pytest.raises(ApiRefusal) as refusal:
        await hooks.webhooks.mutate(creation(PODS, pod()))
    assert (refusal.value.code, refusal.value.reason) == (500, "InternalError")


async def test_a_webhook_has_so_much_time_and_no_more(hooks):
    released = threading.Event()

    def answer_late(_):
        released.wait()
        return ALLOWED

    hooks.add(VALIDATING, "late", answer_late, timeoutSeconds=1)
    try:
        assert "context deadline exceeded" in (await hooks.refusal()).message
    finally:
        released.set()


async def test_a_certificate_of_another_authority_is_not_believed(hooks, tmp_path):
    stranger = Authority(tmp_path, "stranger").files.certificate.read_bytes()
    config = {"url": f"{hooks.server.https.url}/see", "caBundle": base64.b64encode(stranger).decode()}
    hooks.add(VALIDATING, "see", ALLOWED, clientConfig=config)
    assert "certificate verify failed" in (await hooks.refusal()).message
    assert hooks.server.asked == []


async def test_a_bundle_that_is_none_is_not_replaced_by_the_authorities_of_the_system(hooks):
    config = {"url": f"{hooks.server.https.url}/see", "caBundle": "not base64!"}
    hooks.add(VALIDATING, "see", ALLOWED, clientConfig=config)
    assert "caBundle cannot be used" in (await hooks.refusal()).message


async def test_a_service_is_reached_where_it_listens_and_known_by_its_name(hooks):
    bundle = base64.b64encode(hooks.server.authority).decode()
    service = {"namespace": "team", "name": "hook", "path": "see", "port": 8443}
    hooks.services["team", "hook", 8443] = ("127.0.0.1", hooks.server.https.port)
    hooks.add(VALIDATING, "see", ALLOWED, clientConfig={"service": service, "caBundle": bundle})
    await hooks.webhooks.validate(creation(PODS, pod()))
    assert [path for path, _ in hooks.server.asked] == ["/see"]


async def test_a_service_whose_certificate_has_another_name_is_not_believed(hooks):
    bundle = base64.b64encode(hooks.server.authority).decode()
    hooks.services["team", "impostor", 443] = ("127.0.0.1", hooks.server.https.port)
    config = {"service": {"namespace": "team", "name": "impostor"}, "caBundle": bundle}
    hooks.add(VALIDATING, "see", ALLOWED, clientConfig=config)
    assert "impostor.team.svc" in (await hooks.refusal()).message
    assert hooks.server.asked == []


async def test_a_long_answer_is_put_together(server):
    server.answers["/long"] = Said(200, b"x" * 300_000)
    assert await post(Endpoint(f"{server.https.url}/long", server.authority), b"{}", 5) == Answered(200, b"x" * 300_000)


async def test_what_cannot_be_reached_is_told_with_its_address():
    with pytest.raises(CallFailed, match=r'^Post "https://127\.0\.0\.1:1/x": '):
        await post(Endpoint("https://127.0.0.1:1/x"), b"{}", 5)
