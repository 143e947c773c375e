"""Roles, bindings, webhooks and admission policies, as they are written down."""

import pytest

from tests.unit.embedded.resources.making import complaints, created, refusals, served

RBAC, ADMISSION = "rbac.authorization.k8s.io", "admissionregistration.k8s.io"
ROLES, CLUSTER_ROLES = served("roles", RBAC), served("clusterroles", RBAC)
BINDINGS, CLUSTER_BINDINGS = served("rolebindings", RBAC), served("clusterrolebindings", RBAC)
MUTATING = served("mutatingwebhookconfigurations", ADMISSION)
VALIDATING = served("validatingwebhookconfigurations", ADMISSION)
POLICIES = served("validatingadmissionpolicies", ADMISSION)
POLICY_BINDINGS = served("validatingadmissionpolicybindings", ADMISSION)
VIEW = {"kind": "ClusterRole", "name": "view"}
RULE = {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["pods"]}


def named(**fields):
    return {"metadata": {"name": "some"}} | fields


@pytest.mark.parametrize(
    ("rule", "field", "message"),
    [
        ({"apiGroups": [""], "resources": ["a"]}, "verbs", "Required value: verbs must contain at least one value"),
        (
            {"verbs": ["get"], "resources": ["a"]},
            "apiGroups",
            "Required value: resource rules must supply at least one api group",
        ),
        (
            {"verbs": ["get"], "apiGroups": [""]},
            "resources",
            "Required value: resource rules must supply at least one resource",
        ),
        (
            {"verbs": ["get"], "nonResourceURLs": ["/x"]},
            "nonResourceURLs",
            'Invalid value: ["/x"]: namespaced rules cannot apply to non-resource URLs',
        ),
    ],
)
def test_a_rule_says_what_it_is_about(rule, field, message):
    assert complaints(ROLES, named(rules=[rule])) == {f"rules[0].{field}": message}


def test_a_rule_of_the_cluster_is_about_resources_or_paths():
    both = {"verbs": ["get"], "nonResourceURLs": ["/x"], "resources": ["a"], "apiGroups": [""]}
    told = complaints(CLUSTER_ROLES, named(rules=[both]))["rules[0].nonResourceURLs"]
    assert told.endswith("rules cannot apply to both regular resources and non-resource URLs")
    assert created(CLUSTER_ROLES, named(rules=[{"verbs": ["get"], "nonResourceURLs": ["/x"]}]))


def test_a_role_without_rules_says_so():
    assert created(ROLES, named())["rules"] is None


def test_a_binding_is_completed_with_the_group_of_its_role_and_of_users():
    subjects = [{"kind": "User", "name": "alice"}, {"kind": "ServiceAccount", "name": "robot"}]
    made = created(BINDINGS, named(roleRef=VIEW, subjects=subjects))
    assert made["roleRef"]["apiGroup"] == RBAC
    assert [subject.get("apiGroup") for subject in made["subjects"]] == [RBAC, None]


def test_a_binding_keeps_to_its_role():
    made = created(BINDINGS, named(roleRef=VIEW))
    told = refusals(BINDINGS, made, roleRef=made["roleRef"] | {"name": "edit"})
    assert told["roleRef"].endswith("cannot change roleRef")


def test_a_binding_names_a_role_and_subjects_of_known_kinds():
    told = complaints(BINDINGS, named(roleRef={}, subjects=[{"kind": "X"}]))
    assert set(told) == {"roleRef.kind", "roleRef.name", "subjects[0].name", "subjects[0].kind"}


def test_a_binding_of_the_cluster_says_in_which_namespace_an_account_is():
    account = {"kind": "ServiceAccount", "name": "robot"}
    told = complaints(CLUSTER_BINDINGS, named(roleRef=VIEW, subjects=[account]))
    assert told == {"subjects[0].namespace": "Required value"}
    assert "roleRef.kind" in complaints(CLUSTER_BINDINGS, named(roleRef={"kind": "Role", "name": "a"}))


def webhook(**fields):
    asked = {"name": "a.lab.example", "clientConfig": {"service": {"name": "a", "namespace": "b"}}, "rules": [RULE]}
    return named(webhooks=[asked | {"sideEffects": "None", "admissionReviewVersions": ["v1"]} | fields])


def test_a_webhook_is_completed():
    made = created(MUTATING, webhook())["webhooks"][0]
    assert made["clientConfig"]["service"]["port"] == 443
    assert made["rules"][0]["scope"] == "*"
    expected = {"failurePolicy": "Fail", "matchPolicy": "Equivalent", "timeoutSeconds": 10}
    assert expected.items() <= made.items()
    assert made["reinvocationPolicy"] == "Never"
    assert "reinvocationPolicy" not in created(VALIDATING, webhook())["webhooks"][0]


@pytest.mark.parametrize(
    ("fields", "field"),
    [
        ({"name": "short"}, "name"),
        ({"sideEffects": "Some"}, "sideEffects"),
        ({"sideEffects": None}, "sideEffects"),
        ({"timeoutSeconds": 100}, "timeoutSeconds"),
        ({"clientConfig": {}}, "clientConfig"),
        ({"admissionReviewVersions": []}, "admissionReviewVersions"),
        ({"failurePolicy": "Maybe"}, "failurePolicy"),
        ({"rules": [RULE | {"operations": ["X"]}]}, "rules[0].operations[0]"),
        ({"rules": [RULE | {"resources": []}]}, "rules[0].resources"),
    ],
)
def test_a_webhook_is_told_what_is_wrong_with_it(fields, field):
    assert list(complaints(VALIDATING, webhook(**fields))) == [f"webhooks[0].{field}"]


def test_a_policy_is_completed_and_says_what_it_checks():
    made = created(
        POLICIES,
        named(spec={"matchConstraints": {"resourceRules": [RULE]}, "validations": [{"expression": "true"}]}),
    )
    assert made["spec"]["failurePolicy"] == "Fail"
    assert made["spec"]["matchConstraints"]["resourceRules"][0]["scope"] == "*"
    assert set(complaints(POLICIES, named())) == {"spec.matchConstraints", "spec.validations", "spec.auditAnnotations"}


def test_a_binding_of_a_policy_says_which_and_what_to_do():
    told = complaints(POLICY_BINDINGS, named())
    assert set(told) == {"spec.policyName", "spec.validationActions"}
    assert "spec.validationActions[0]" in complaints(
        POLICY_BINDINGS, named(spec={"policyName": "p", "validationActions": ["Shout"]})
    )
