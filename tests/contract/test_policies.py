"""CEL in the API server: rules of a schema, and ValidatingAdmissionPolicies."""

import pytest

from tests.contract.api import MERGE_PATCH
from tests.contract.objects import config_map, pod
from tests.contract.refusals import refused
from tests.contract.waiting import eventually

pytestmark = pytest.mark.contract(area="CEL rules and policies", needed_by="operators, admission, GpuClaim")

REGISTRATION = "admissionregistration.k8s.io/v1"
CLAIM = {
    "spec": {
        "type": "object",
        "properties": {
            "count": {"type": "integer"},
            "policy": {"type": "string", "enum": ["spread", "preferIds"], "default": "spread"},
            "preferIds": {"type": "array", "maxItems": 16, "items": {"type": "integer"}},
            "node": {
                "type": "string",
                "maxLength": 253,
                "x-kubernetes-validations": [{"rule": "self == oldSelf", "message": "node is fixed"}],
            },
        },
        "x-kubernetes-validations": [
            {"rule": "self.policy != 'preferIds' || has(self.preferIds)", "message": "preferIds needs a list of ids"},
            {
                "rule": "!has(self.preferIds) || size(self.preferIds) <= self.count",
                "messageExpression": "'policy ' + self.policy + ' takes no more ids than devices'",
            },
        ],
    }
}


@pytest.mark.contract(promise="A rule of a schema that does not hold is 422 with its message")
def test_a_rule_is_enforced_with_its_message(serve):
    claims = serve(schema=CLAIM)
    with refused(422, "Invalid") as refusal:
        claims.create(claims.widget("c", {"count": 1, "policy": "preferIds"}))
    assert refusal.value.causes[0]["message"] == "Invalid value: preferIds needs a list of ids"
    assert refusal.value.causes[0]["field"] == "spec"


@pytest.mark.contract(promise="messageExpression makes the message from the object")
def test_a_message_can_be_computed(serve):
    claims = serve(schema=CLAIM)
    with refused(422, "Invalid") as refusal:
        claims.create(claims.widget("c", {"count": 1, "preferIds": [0, 1]}))
    assert "policy spread takes no more ids than devices" in refusal.value.message


@pytest.mark.contract(promise="A rule with oldSelf holds for changes and not for the first write")
def test_a_field_can_be_fixed_by_a_rule(serve):
    claims = serve(schema=CLAIM)
    claims.create(claims.widget("c", {"count": 1, "node": "a"}))
    claims.patch("c", MERGE_PATCH, {"spec": {"count": 2}})
    with refused(422, "Invalid") as refusal:
        claims.patch("c", MERGE_PATCH, {"spec": {"node": "b"}})
    assert refusal.value.causes[0]["field"] == "spec.node"
    assert "node is fixed" in refusal.value.message


@pytest.mark.contract(promise="A rule that does not compile makes the definition 422")
def test_a_wrong_rule_is_refused_with_the_definition(serve):
    broken = {"spec": {"type": "object", "x-kubernetes-validations": [{"rule": "self.absent > 1"}]}}
    with refused(422, "Invalid") as refusal:
        serve(schema=broken)
    assert "compilation failed" in refusal.value.message


@pytest.fixture
def policy(api, namespace, unique, create_for_now):
    """Put a policy into force in the test's namespace; the answer to an example that it objects to."""

    def put_into_force(resource, example, *, actions=("Deny",), **spec):
        rule = {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE", "UPDATE"], "resources": [resource]}
        constraints = {"resourceRules": [rule]}
        body = {"metadata": {"name": unique}, "spec": {"matchConstraints": constraints} | spec}
        create_for_now(api.collection(f"{REGISTRATION}/validatingadmissionpolicies"), body)
        selector = {"matchLabels": {"kubernetes.io/metadata.name": namespace}}
        bound = {"policyName": unique, "validationActions": list(actions)}
        bound |= {"matchResources": {"namespaceSelector": selector}}
        bindings = api.collection(f"{REGISTRATION}/validatingadmissionpolicybindings")
        create_for_now(bindings, {"metadata": {"name": unique}, "spec": bound})
        collection = api.collection(resource, namespace)
        return eventually(lambda: noticed(collection, example))

    def noticed(collection, body):
        answer = api.send("POST", collection.path, body, query={"dryRun": "All"})
        return answer if answer.status >= 400 or "Warning" in answer.headers else None

    return put_into_force


NO_COLOUR = {"expression": "!('colour' in object.data)", "message": "no colours here"}


@pytest.mark.contract(promise="A policy with a binding denies with 422 and says policy, binding and message")
def test_a_policy_denies(policy, config_maps, unique):
    policy("configmaps", config_map("settings"), validations=[NO_COLOUR])
    with refused(422, "Invalid") as refusal:
        config_maps.create(config_map("settings"))
    who = f"ValidatingAdmissionPolicy '{unique}' with binding '{unique}'"
    assert refusal.value.message == f'configmaps "settings" is forbidden: {who} denied request: no colours here'
    config_maps.create(config_map("settings", {"shape": "round"}))


@pytest.mark.contract(promise="A validation may choose the reason Forbidden, and compute its message")
def test_a_policy_chooses_its_reason(policy, config_maps):
    validation = {
        "expression": "!('colour' in object.data)",
        "reason": "Forbidden",
        "messageExpression": "'no ' + object.data.colour",
    }
    policy("configmaps", config_map("settings"), validations=[validation])
    with refused(403, "Forbidden") as refusal:
        config_maps.create(config_map("settings"))
    assert refusal.value.message.endswith("denied request: no red")


@pytest.mark.contract(promise="matchConditions of a policy spare what they do not match")
def test_a_policy_spares_what_it_does_not_match(policy, config_maps):
    condition = {"name": "strict", "expression": "has(object.metadata.labels) && 'strict' in object.metadata.labels"}
    strict = config_map("settings", labels={"strict": ""})
    policy("configmaps", strict, validations=[NO_COLOUR], matchConditions=[condition])
    config_maps.create(config_map("settings"))
    with refused(422):
        config_maps.create(config_map("other", labels={"strict": ""}))


@pytest.mark.contract(
    promise="A policy sees who asks and how the object was before, and names what it computes in variables"
)
def test_a_policy_knows_who_asks_and_what_was(policy, pods, api_as, namespace):
    variables = [
        {"name": "now", "expression": allocation_of("object")},
        {"name": "before", "expression": allocation_of("oldObject")},
    ]
    validation = {
        "expression": "request.userInfo.username == 'scheduler' || variables.now == variables.before",
        "message": "only the scheduler allocates",
    }
    allocated = {"gpu.scheduling/allocated": "node-a:0"}
    policy("pods", pod("worker", annotations=allocated), validations=[validation], variables=variables)
    pods.create(pod("worker"))
    pods.patch("worker", MERGE_PATCH, {"metadata": {"annotations": {"harmless": "yes"}}})
    with refused(422) as refusal:
        pods.patch("worker", MERGE_PATCH, {"metadata": {"annotations": allocated}})
    assert "only the scheduler allocates" in refusal.value.message
    scheduler = api_as("scheduler", ["system:masters"]).collection("pods", namespace)
    scheduler.patch("worker", MERGE_PATCH, {"metadata": {"annotations": allocated}})
    pods.patch("worker", MERGE_PATCH, {"metadata": {"annotations": {"harmless": "no"}}})


def allocation_of(subject):
    """CEL for an annotation of something that need not have any, or be there at all."""
    annotations, key = f"{subject}.metadata.annotations", "'gpu.scheduling/allocated'"
    return f"{subject} != null && has({annotations}) && {key} in {annotations} ? {annotations}[{key}] : ''"


@pytest.mark.contract(promise="A binding with the action Warn lets through and warns")
def test_a_policy_can_warn(policy, config_maps, unique):
    answer = policy("configmaps", config_map("settings"), actions=["Warn"], validations=[NO_COLOUR])
    assert answer.status == 201
    assert f"Validation failed for ValidatingAdmissionPolicy '{unique}'" in answer.headers["Warning"]
    config_maps.create(config_map("settings"))
