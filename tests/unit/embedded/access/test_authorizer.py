"""Who may do what, by roles and bindings."""

import pytest

from tessera.embedded.access import ANONYMOUS, Attributes, Authorizer, User
from tests.unit.embedded.access.cluster import Cluster, rule, user

ALICE = User(name="alice", groups=("system:authenticated",))
ROBOT = User(name="system:serviceaccount:lab:robot", groups=("system:serviceaccounts", "system:authenticated"))


@pytest.fixture
def cluster():
    return Cluster()


@pytest.fixture
def may(cluster):
    authorizer = Authorizer(cluster)

    def ask(verb, resource="", *, who=ALICE, namespace="lab", name="", group="", path=""):
        plural, _, door = resource.partition("/")
        wanted = Attributes(
            user=who,
            verb=verb,
            resource=plural,
            subresource=door,
            namespace=namespace,
            name=name,
            group=group,
            path=path,
        )
        return authorizer.allows(wanted)

    return ask


def test_what_nobody_granted_is_forbidden(may):
    assert not may("list", "configmaps")


def test_a_role_grants_in_its_namespace_alone(cluster, may):
    cluster.role("lab", "some", rule(["get", "list"], "configmaps"))
    cluster.bind("lab", "Role", "some", user("alice"))
    assert may("list", "configmaps")
    assert not may("delete", "configmaps")
    assert not may("list", "configmaps", namespace="default")
    assert not may("list", "configmaps", namespace="")
    assert not may("list", "configmaps", group="lab.example")
    assert not may("list", "configmaps", who=User(name="bob"))


def test_a_cluster_role_grants_where_it_is_bound(cluster, may):
    cluster.cluster_role("reader", rule(["get"], "nodes"))
    cluster.bind("lab", "ClusterRole", "reader", user("alice"))
    assert may("get", "nodes")
    assert not may("get", "nodes", namespace="")
    cluster.bind("", "ClusterRole", "reader", user("alice"))
    assert may("get", "nodes", namespace="")


def test_a_change_holds_from_the_next_question_on(cluster, may):
    assert not may("list", "pods")
    cluster.role("lab", "some", rule(["list"], "pods"))
    cluster.bind("lab", "Role", "some", user("alice"))
    assert may("list", "pods")
    cluster.role("lab", "some", rule(["get"], "pods"))
    assert not may("list", "pods")
    cluster.remove("rolebindings.rbac.authorization.k8s.io", "lab", "bind-some")
    assert not may("get", "pods")


def test_nothing_is_read_while_nothing_is_written(cluster, may):
    may("list", "pods")
    before = cluster.reads
    may("list", "pods")
    assert cluster.reads == before


def test_a_viewer_reads_everything_but_secrets_and_writes_nothing(cluster, may):
    cluster.bind("lab", "ClusterRole", "view", user("alice"))
    for resource, group in (("pods", ""), ("pods/log", ""), ("deployments", "apps"), ("jobs", "batch"), ("events", "")):
        assert may("list", resource, group=group), resource
    assert not may("list", "secrets")
    assert not may("create", "pods")
    assert not may("create", "pods/exec")


def test_an_editor_writes_what_a_viewer_reads_and_grants_nothing(cluster, may):
    cluster.bind("lab", "ClusterRole", "edit", user("alice"))
    assert may("create", "pods")
    assert may("list", "pods")
    assert may("get", "secrets")
    assert may("create", "pods/exec")
    assert may("update", "deployments/scale", group="apps")
    assert not may("update", "resourcequotas")
    assert not may("create", "rolebindings", group="rbac.authorization.k8s.io")


def test_an_administrator_of_a_namespace_grants_in_it(cluster, may):
    cluster.bind("lab", "ClusterRole", "admin", user("alice"))
    assert may("create", "rolebindings", group="rbac.authorization.k8s.io")
    assert may("delete", "pods")
    assert not may("create", "clusterroles", group="rbac.authorization.k8s.io")
    assert not may("delete", "pods", namespace="other")


def test_a_role_that_is_labelled_for_it_is_aggregated(cluster, may):
    cluster.bind("lab", "ClusterRole", "view", user("alice"))
    cluster.bind("other", "ClusterRole", "admin", user("alice"))
    assert not may("get", "gpuclaims", group="lab.example")
    label = {"rbac.authorization.k8s.io/aggregate-to-view": "true"}
    cluster.cluster_role("claims:view", rule(["get"], "gpuclaims", group="lab.example"), labels=label)
    assert may("get", "gpuclaims", group="lab.example")
    assert may("get", "gpuclaims", group="lab.example", namespace="other")


def test_roles_that_aggregate_one_another_come_to_an_end(cluster, may):
    for name, other in (("a", "b"), ("b", "a")):
        selector = {"clusterRoleSelectors": [{"matchLabels": {f"to-{name}": "true"}}]}
        cluster.cluster_role(name, labels={f"to-{other}": "true"}, aggregationRule=selector)
    cluster.bind("lab", "ClusterRole", "a", user("alice"))
    assert not may("get", "pods")


def test_a_subresource_needs_a_rule_of_its_own(cluster, may):
    cluster.role("lab", "some", rule(["get"], "pods"))
    cluster.bind("lab", "Role", "some", user("alice"))
    assert not may("get", "pods/status")
    cluster.role("lab", "some", rule(["get"], "*/status"))
    assert may("get", "pods/status")
    assert not may("get", "pods")
    cluster.role("lab", "some", rule(["*"], "*"))
    assert may("create", "pods/binding")


def test_a_rule_can_name_its_objects(cluster, may):
    cluster.role("lab", "some", rule(["get", "list"], "configmaps", resourceNames=["mine"]))
    cluster.bind("lab", "Role", "some", user("alice"))
    assert may("get", "configmaps", name="mine")
    assert not may("get", "configmaps", name="other")
    assert not may("list", "configmaps")


def test_an_account_is_bound_by_its_name_and_namespace(cluster, may):
    cluster.role("lab", "some", rule(["get"], "pods"))
    cluster.bind("lab", "Role", "some", {"kind": "ServiceAccount", "name": "robot", "namespace": "lab"})
    assert may("get", "pods", who=ROBOT)
    assert not may("get", "pods", who=User(name="system:serviceaccount:other:robot"))


def test_masters_may_do_everything(may):
    root = User(name="root", groups=("system:masters",))
    assert may("delete", "anything", who=root, group="any.example", namespace="")
    assert may("get", who=root, path="/metrics")


def test_discovery_is_for_those_who_are_known_and_health_for_all(may):
    assert may("get", path="/apis/apps/v1")
    assert may("get", path="/openapi/v3/api/v1")
    assert not may("get", path="/metrics")
    assert may("get", who=ANONYMOUS, path="/healthz")
    assert may("get", who=ANONYMOUS, path="/version")
    assert not may("get", who=ANONYMOUS, path="/api")
    assert not may("list", "pods", who=ANONYMOUS)


def test_everybody_may_ask_about_themselves(may):
    assert may("create", "selfsubjectaccessreviews", group="authorization.k8s.io", namespace="")
    assert not may("create", "subjectaccessreviews", group="authorization.k8s.io", namespace="")


def test_readers_read_everything_but_secrets_everywhere(may):
    reader = User(name="dashboard", groups=("tessera:readers",))
    assert may("list", "nodes", who=reader, namespace="")
    assert may("list", "pods", who=reader, namespace="")
    assert not may("list", "secrets", who=reader, namespace="lab")
    assert not may("create", "pods", who=reader)


def test_a_decision_says_what_it_rests_on(cluster):
    cluster.bind("lab", "ClusterRole", "view", user("alice"))
    decision = Authorizer(cluster).decide(Attributes(user=ALICE, verb="list", resource="pods", namespace="lab"))
    told = 'RBAC: allowed by RoleBinding "bind-view/lab" of ClusterRole "view" to User "alice"'
    assert decision == (True, told)


def test_ones_rules_are_told_as_they_were_written(cluster):
    cluster.role("lab", "some", rule(["list"], "pods"))
    cluster.bind("lab", "Role", "some", user("alice"))
    rules = Authorizer(cluster).rules_for(ALICE, "lab")
    assert {"verbs": ["list"], "apiGroups": [""], "resources": ["pods"]} in rules.resources
    assert any("/healthz" in entry["nonResourceURLs"] for entry in rules.paths)
    assert {"verbs": ["list"], "apiGroups": [""], "resources": ["pods"]} not in Authorizer(cluster).rules_for(
        ALICE, "other"
    ).resources
