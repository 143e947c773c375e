"""Who may do what: certificates, tokens, roles, and questions about them."""

import json
from contextlib import ExitStack

import pytest

from tests.contract.api import Api
from tests.contract.objects import config_map, pod
from tests.contract.refusals import refused
from tests.contract.waiting import eventually

pytestmark = pytest.mark.contract(area="Access", needed_by="everything")

RBAC = "rbac.authorization.k8s.io"


@pytest.fixture
def alice(api_as):
    """Somebody who may do nothing yet."""
    return api_as("alice")


@pytest.fixture
def bind_role(api, namespace):
    """Give alice a role in the test's namespace."""

    def bind(kind, role):
        subject = {"kind": "User", "name": "alice", "apiGroup": RBAC}
        reference = {"kind": kind, "name": role, "apiGroup": RBAC}
        body = {"metadata": {"name": "alice"}, "subjects": [subject], "roleRef": reference}
        api.collection(f"{RBAC}/v1/rolebindings", namespace).create(body)

    return bind


@pytest.fixture
def grant(api, namespace, bind_role):
    """Let alice do what one rule says in the test's namespace."""

    def create_role(rule):
        api.collection(f"{RBAC}/v1/roles", namespace).create({"metadata": {"name": "some"}, "rules": [rule]})
        bind_role("Role", "some")

    return create_role


def rule(verbs, resource, **more):
    return {"apiGroups": [""], "resources": [resource], "verbs": verbs} | more


def wait_until_allowed(api, path):
    eventually(lambda: api.send("GET", path).status == 200)


@pytest.mark.contract(
    promise="What nobody granted is 403, with user, verb, resource, group and namespace", needed_by="everything, MPIJob"
)
def test_what_nobody_granted_is_forbidden(alice, namespace):
    with refused(403, "Forbidden") as refusal:
        alice.collection("configmaps", namespace).listing()
    complaint = f'User "alice" cannot list resource "configmaps" in API group "" in the namespace "{namespace}"'
    assert refusal.value.message == f"configmaps is forbidden: {complaint}"


@pytest.mark.contract(promise="Without namespace the refusal says `at the cluster scope`")
def test_a_refusal_at_the_cluster_scope_says_so(alice):
    with refused(403, "Forbidden") as refusal:
        alice.collection("nodes").get("node-a")
    complaint = 'User "alice" cannot get resource "nodes" in API group "" at the cluster scope'
    assert refusal.value.message == f'nodes "node-a" is forbidden: {complaint}'


@pytest.mark.contract(promise="A Role and a RoleBinding grant in their namespace and nowhere else")
def test_a_role_grants_in_its_namespace_alone(alice, grant, namespace):
    grant(rule(["get", "list", "create"], "configmaps"))
    ours = alice.collection("configmaps", namespace)
    wait_until_allowed(alice, ours.path)
    ours.create(config_map("settings"))
    with refused(403):
        ours.delete("settings")
    with refused(403):
        alice.collection("configmaps", "default").listing()


@pytest.mark.contract(
    promise="The ClusterRole `view` reads everything but secrets and writes nothing", needed_by="views"
)
def test_a_viewer_reads_and_does_not_write(alice, bind_role, namespace):
    bind_role("ClusterRole", "view")
    pods = alice.collection("pods", namespace)
    wait_until_allowed(alice, pods.path)
    with refused(403):
        pods.create(pod("worker"))
    with refused(403):
        alice.collection("secrets", namespace).listing()


@pytest.mark.contract(promise="A subresource is granted apart from its resource", needed_by="scheduler, operators")
def test_a_subresource_needs_a_rule_of_its_own(alice, grant, namespace, pods):
    grant(rule(["get"], "pods"))
    pods.create(pod("worker"))
    wait_until_allowed(alice, f"{pods.path}/worker")
    with refused(403) as refusal:
        alice.collection("pods", namespace).get("worker/status")
    assert 'cannot get resource "pods/status"' in refusal.value.message


@pytest.mark.contract(promise="resourceNames grant the named objects alone", needed_by="scheduler")
def test_a_rule_can_name_its_objects(alice, grant, config_maps):
    for name in ("mine", "other"):
        config_maps.create(config_map(name))
    grant(rule(["get"], "configmaps", resourceNames=["mine"]))
    wait_until_allowed(alice, f"{config_maps.path}/mine")
    with refused(403):
        alice.get(f"{config_maps.path}/other")


@pytest.mark.contract(
    promise="Whoever may impersonate somebody acts as that one, and nobody else does", needed_by="kubectl, views"
)
def test_acting_as_somebody_else(api, alice, namespace):
    path = f"/api/v1/namespaces/{namespace}/configmaps"
    as_bob = {"Impersonate-User": "bob"}
    assert api.send("GET", path).status == 200
    refusal = api.send("GET", path, headers=as_bob)
    assert refusal.status == 403
    assert 'User "bob" cannot list resource "configmaps"' in refusal.body["message"]
    assert api.send("GET", path, headers=as_bob | {"Impersonate-Group": "system:masters"}).status == 200
    refusal = alice.send("GET", path, headers=as_bob)
    assert refusal.status == 403
    assert 'User "alice" cannot impersonate' in refusal.body["message"]


@pytest.mark.contract(promise="A token that is none is 401 Unauthorized")
def test_a_wrong_token_is_unauthorized(with_token):
    stranger = with_token("nonsense")
    with refused(401, "Unauthorized") as refusal:
        stranger.get("/api/v1/pods")
    assert refusal.value.message == "Unauthorized"


@pytest.fixture
def with_token(engine, tmp_path):
    """The API for whoever shows this token."""
    with ExitStack() as stack:

        def connect(token):
            path = tmp_path / "token.kubeconfig"
            cluster = {"server": engine.url, "certificate-authority": str(engine.authority)}
            users = [{"name": "token", "user": {"token": token}}]
            path.write_text(json.dumps({"clusters": [{"name": "c", "cluster": cluster}], "users": users}))
            return stack.enter_context(Api(path))

        yield connect


@pytest.fixture
def token_of(api, namespace):
    """A token for a new service account of the test's namespace."""

    def request(name, **spec):
        accounts = api.collection("serviceaccounts", namespace)
        accounts.create({"metadata": {"name": name}})
        body = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": spec}
        return accounts.post(f"{name}/token", body)["status"]["token"]

    return request


@pytest.mark.contract(
    promise="TokenRequest gives a token, and whoever shows it is that ServiceAccount", needed_by="operators, Compute"
)
def test_a_requested_token_speaks_for_its_account(namespace, token_of, with_token):
    robot = with_token(token_of("robot", expirationSeconds=600))
    review = {"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"}
    who = robot.ask("POST", "/apis/authentication.k8s.io/v1/selfsubjectreviews", review)["status"]["userInfo"]
    assert who["username"] == f"system:serviceaccount:{namespace}:robot"
    assert f"system:serviceaccounts:{namespace}" in who["groups"]
    with refused(403):
        robot.collection("configmaps", namespace).listing()


@pytest.mark.contract(
    promise="TokenReview tells whose token it is, and that nonsense is nobody's", needed_by="node, views"
)
def test_a_token_can_be_looked_up(api, namespace, token_of):
    def reviewed(token):
        body = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenReview", "spec": {"token": token}}
        return api.ask("POST", "/apis/authentication.k8s.io/v1/tokenreviews", body)["status"]

    known = reviewed(token_of("robot"))
    assert known["authenticated"] is True
    assert known["user"]["username"] == f"system:serviceaccount:{namespace}:robot"
    assert "authenticated" not in reviewed("nonsense")


@pytest.mark.contract(promise="A token for another audience is not accepted by the server itself", needed_by="node")
def test_a_token_is_for_its_audience(token_of, with_token):
    elsewhere = with_token(token_of("robot", audiences=["tessera"]))
    with refused(401, "Unauthorized"):
        elsewhere.get("/api")


@pytest.mark.contract(promise="SubjectAccessReview answers for anybody", needed_by="views, scheduler")
def test_anybodys_rights_can_be_asked_for(api, grant, namespace):
    grant(rule(["list"], "pods"))

    def allowed(verb):
        attributes = {"namespace": namespace, "verb": verb, "resource": "pods"}
        body = {"kind": "SubjectAccessReview", "apiVersion": "authorization.k8s.io/v1"}
        body |= {"spec": {"user": "alice", "resourceAttributes": attributes}}
        return api.ask("POST", "/apis/authorization.k8s.io/v1/subjectaccessreviews", body)["status"]["allowed"]

    eventually(lambda: allowed("list"))
    assert allowed("delete") is False


@pytest.mark.contract(
    promise="SelfSubjectAccessReview and SelfSubjectRulesReview answer for oneself", needed_by="views, kubectl"
)
def test_own_rights_can_be_asked_for(alice, grant, namespace):
    grant(rule(["list"], "pods"))
    wait_until_allowed(alice, f"/api/v1/namespaces/{namespace}/pods")
    attributes = {"namespace": namespace, "verb": "delete", "resource": "pods"}
    body = {"kind": "SelfSubjectAccessReview", "apiVersion": "authorization.k8s.io/v1"}
    body |= {"spec": {"resourceAttributes": attributes}}
    review = alice.ask("POST", "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews", body)
    assert review["status"]["allowed"] is False
    body = {"kind": "SelfSubjectRulesReview", "apiVersion": "authorization.k8s.io/v1", "spec": {"namespace": namespace}}
    rules = alice.ask("POST", "/apis/authorization.k8s.io/v1/selfsubjectrulesreviews", body)["status"]["resourceRules"]
    assert {"verbs": ["list"], "apiGroups": [""], "resources": ["pods"]} in rules


@pytest.mark.contract(
    promise="Every namespace has a ServiceAccount `default` and the ConfigMap kube-root-ca.crt",
    needed_by="node, Compute",
)
def test_a_namespace_is_furnished(api, namespace, config_maps):
    eventually(lambda: api.collection("serviceaccounts", namespace).exists("default"))
    eventually(lambda: config_maps.exists("kube-root-ca.crt"))
    assert "BEGIN CERTIFICATE" in config_maps.get("kube-root-ca.crt")["data"]["ca.crt"]
