"""ValidatingAdmissionPolicies: what they see, what they object to, and in which words."""

import pytest

from tessera.embedded.admitting.policies import Policies
from tessera.embedded.admitting.registrations import BINDINGS, POLICIES
from tessera.embedded.refusals import ApiRefusal
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

RULE = {"operations": ["CREATE", "UPDATE"], "apiGroups": [""], "apiVersions": ["v1"], "resources": ["configmaps"]}
NO_COLOUR = {"expression": "!('colour' in object.data)", "message": "no colours here"}


def put_into_force(cluster, *, resource="configmaps", actions=("Deny",), matches=None, **spec):
    constraints = {"resourceRules": [RULE | {"resources": [resource]}]}
    policy = {"metadata": {"name": "strict"}, "spec": {"matchConstraints": constraints} | spec}
    bound = {"policyName": "strict", "validationActions": list(actions), "matchResources": matches}
    cluster.add(POLICIES, policy)
    cluster.add(BINDINGS, {"metadata": {"name": "here"}, "spec": bound})
    return Policies(cluster)


@pytest.fixture
def cluster():
    return Cluster()


def denied(policies, asked):
    with pytest.raises(ApiRefusal) as refusal:
        policies.validate(asked)
    return refusal.value


RED = creation(CONFIG_MAPS, config_map(colour="red"))


def test_a_policy_denies_and_says_who_and_why(cluster):
    refusal = denied(put_into_force(cluster, validations=[NO_COLOUR]), RED)
    why = "ValidatingAdmissionPolicy 'strict' with binding 'here' denied request: no colours here"
    assert (refusal.code, refusal.reason) == (422, "Invalid")
    assert refusal.message == f'configmaps "settings" is forbidden: {why}'
    assert refusal.details["causes"] == [{"message": why}]


def test_what_a_policy_has_nothing_against_passes(cluster):
    policies = put_into_force(cluster, validations=[NO_COLOUR])
    assert policies.validate(creation(CONFIG_MAPS, config_map(shape="round"))) == []
    assert policies.validate(creation(PODS, pod())) == []


def test_a_policy_without_a_binding_does_nothing(cluster):
    put_into_force(cluster, validations=[NO_COLOUR])
    unbound = Cluster(**{POLICIES: cluster.list(POLICIES)})
    assert Policies(unbound).validate(RED) == []


@pytest.mark.parametrize(
    ("reason", "code"), [("Forbidden", 403), ("Unauthorized", 401), ("RequestEntityTooLarge", 413), ("Invalid", 422)]
)
def test_a_validation_chooses_its_reason(cluster, reason, code):
    refusal = denied(put_into_force(cluster, validations=[NO_COLOUR | {"reason": reason}]), RED)
    assert (refusal.code, refusal.reason) == (code, reason)


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"messageExpression": "'no ' + object.data.colour"}, "no red"),
        ({"messageExpression": "object.data.shape"}, "no colours here"),
        ({"messageExpression": "'  '"}, "no colours here"),
        ({"message": ""}, "failed expression: !('colour' in object.data)"),
    ],
)
def test_a_message_is_computed_where_it_can_be(cluster, fields, message):
    refusal = denied(put_into_force(cluster, validations=[NO_COLOUR | fields]), RED)
    assert refusal.message.endswith(f"denied request: {message}")


def test_a_binding_that_warns_lets_through(cluster):
    policies = put_into_force(cluster, actions=["Warn"], validations=[NO_COLOUR])
    warning = "Validation failed for ValidatingAdmissionPolicy 'strict' with binding 'here': no colours here"
    assert policies.validate(RED) == [warning]


def test_a_binding_that_only_audits_says_nothing(cluster):
    assert put_into_force(cluster, actions=["Audit"], validations=[NO_COLOUR]).validate(RED) == []


def test_a_binding_narrows_what_its_policy_is_about(cluster):
    elsewhere = {"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "elsewhere"}}}
    assert put_into_force(cluster, matches=elsewhere, validations=[NO_COLOUR]).validate(RED) == []


def test_conditions_spare_what_they_do_not_match(cluster):
    condition = {"name": "strict", "expression": "has(object.metadata.labels) && 'strict' in object.metadata.labels"}
    policies = put_into_force(cluster, validations=[NO_COLOUR], matchConditions=[condition])
    assert policies.validate(RED) == []
    labelled = config_map(colour="red") | {"metadata": {"name": "settings", "labels": {"strict": ""}}}
    denied(policies, creation(CONFIG_MAPS, labelled))


def test_a_policy_knows_who_asks_what_was_and_where(cluster):
    expressions = (
        "request.userInfo.username == 'scheduler'",
        "request.operation == 'UPDATE' && oldObject.data.a == '1' && object.data.a == '2'",
        "namespaceObject.metadata.name == 'team' && request.namespace == 'team'",
        "request.resource.resource == 'configmaps' && request.kind.kind == 'ConfigMap' && !has(request.subResource)",
        "'system:masters' in request.userInfo.groups && request.userInfo.extra['node'] == ['a']",
    )
    policies = put_into_force(cluster, validations=[{"expression": expression} for expression in expressions])
    scheduler = Person("scheduler", groups=("system:masters",), extra={"node": ("a",)})
    change = {"old": config_map(a="1"), "new": config_map(a="2")}
    assert policies.validate(update(CONFIG_MAPS, **change, user=scheduler)) == []
    assert denied(policies, update(CONFIG_MAPS, **change)).message.endswith(f"failed expression: {expressions[0]}")


def test_variables_are_computed_from_one_another_and_only_when_asked_for(cluster):
    variables = [
        {"name": "colours", "expression": "object.data.map(k, object.data[k])"},
        {"name": "count", "expression": "variables.colours.size()"},
        {"name": "never", "expression": "object.absent"},
    ]
    validation = {"expression": "variables.count < 2", "messageExpression": "string(variables.count) + ' colours'"}
    policies = put_into_force(cluster, validations=[validation], variables=variables)
    assert policies.validate(RED) == []
    two = creation(CONFIG_MAPS, config_map(a="red", b="blue"))
    assert denied(policies, two).message.endswith("denied request: 2 colours")


def test_a_variable_that_fails_is_named(cluster):
    variables = [{"name": "shape", "expression": "object.data.shape"}]
    policies = put_into_force(cluster, validations=[{"expression": "variables.shape == ''"}], variables=variables)
    assert 'composited variable "shape" fails to evaluate: no such key: shape' in denied(policies, RED).message


FAILING = [
    {"validations": [{"expression": "object.data.shape == 'round'"}]},
    {"validations": [NO_COLOUR], "matchConditions": [{"name": "c", "expression": "object.absent"}]},
    {"validations": [{"expression": "nobody"}]},
    {"validations": [{"expression": "variables.later"}], "variables": []},
]


@pytest.mark.parametrize("spec", FAILING)
def test_what_cannot_be_decided_is_denied(cluster, spec):
    refusal = denied(put_into_force(cluster, **spec), RED)
    assert any(why in refusal.message for why in ("no such key", "compilation failed: ERROR"))


@pytest.mark.parametrize("spec", FAILING)
def test_what_cannot_be_decided_is_let_through_where_the_policy_says_so(cluster, spec):
    assert put_into_force(cluster, failurePolicy="Ignore", **spec).validate(RED) == []


def test_a_new_version_of_a_policy_is_read_anew(cluster):
    policies = put_into_force(cluster, validations=[NO_COLOUR])
    denied(policies, RED)
    found = cluster.list(POLICIES)[0]
    found["metadata"]["resourceVersion"] = "2"
    found["spec"]["validations"] = [{"expression": "true"}]
    assert policies.validate(RED) == []


def test_a_deletion_has_no_object(cluster):
    rule = RULE | {"operations": ["DELETE"]}
    validation = {"expression": "object == null && oldObject.data.colour != 'red'"}
    constraints = {"resourceRules": [rule]}
    policies = put_into_force(cluster, validations=[validation], matchConstraints=constraints)
    denied(policies, request("DELETE", CONFIG_MAPS, old_object=config_map(colour="red")))
    assert policies.validate(request("DELETE", CONFIG_MAPS, old_object=config_map(colour="blue"))) == []
