"""Quotas, budgets, priorities, policies, leases: what limits others."""

import pytest

from tests.unit.embedded.resources.making import complaints, created, refusals, served

QUOTAS = served("resourcequotas")
BUDGETS = served("poddisruptionbudgets", "policy")
PRIORITIES = served("priorityclasses", "scheduling.k8s.io")
POLICIES = served("networkpolicies", "networking.k8s.io")
LEASES = served("leases", "coordination.k8s.io")
RUNTIMES = served("runtimeclasses", "node.k8s.io")
CLAIMS = served("persistentvolumeclaims")


def named(**fields):
    return {"metadata": {"name": "team"}} | fields


def test_the_limits_of_a_quota_are_kept_in_canonical_form():
    made = created(QUOTAS, named(spec={"hard": {"pods": 10, "requests.nvidia.com/gpu": "8000"}}))
    assert made["spec"]["hard"] == {"pods": "10", "requests.nvidia.com/gpu": "8k"}
    assert made["status"] == {}


def test_a_quota_limits_what_there_is():
    told = complaints(QUOTAS, named(spec={"hard": {"gpu": "1", "pods": "-1"}}))
    assert told["spec.hard[gpu]"] == 'Invalid value: "gpu": must be a standard resource for quota'
    assert told["spec.hard[pods]"] == 'Invalid value: "-1": must be greater than or equal to 0'


@pytest.mark.parametrize(
    ("spec", "field", "message"),
    [
        ({"minAvailable": 1, "maxUnavailable": 1}, "spec", "minAvailable and maxUnavailable cannot be both set"),
        ({"minAvailable": -1}, "spec.minAvailable", "Invalid value: -1: must be greater than or equal to 0"),
        ({"maxUnavailable": "101%"}, "spec.maxUnavailable", 'Invalid value: "101%": must not be greater than 100%'),
        ({"maxUnavailable": "many"}, "spec.maxUnavailable", "a valid percent string"),
    ],
)
def test_a_budget_says_one_thing_that_can_be_counted(spec, field, message):
    assert message in complaints(BUDGETS, named(spec=spec))[field]


def test_a_new_budget_allows_nothing_until_it_is_counted():
    assert created(BUDGETS, named(spec={"minAvailable": 1}))["status"]["disruptionsAllowed"] == 0


def test_a_priority_is_below_that_of_the_system_and_fixed():
    told = complaints(PRIORITIES, named(value=2_000_000_000))
    assert told == {"value": "Forbidden: maximum allowed value of a user defined priority is 1000000000"}
    assert "metadata.name" in complaints(PRIORITIES, {"metadata": {"name": "system-mine"}, "value": 1})
    made = created(PRIORITIES, named(value=1000))
    assert made["preemptionPolicy"] == "PreemptLowerPriority"
    assert refusals(PRIORITIES, made, value=1) == {"value": "Forbidden: may not be changed in an update."}


def test_a_network_policy_is_completed_with_its_directions():
    rule = {"ports": [{"port": 22}]}
    made = created(POLICIES, named(spec={"podSelector": {}, "ingress": [rule], "egress": [rule]}))
    assert made["spec"]["policyTypes"] == ["Ingress", "Egress"]
    assert made["spec"]["ingress"][0]["ports"] == [{"port": 22, "protocol": "TCP"}]
    assert created(POLICIES, named(spec={"podSelector": {}}))["spec"]["policyTypes"] == ["Ingress"]


@pytest.mark.parametrize(
    ("rule", "field", "message"),
    [
        ({"ports": [{"port": 70000}]}, "ports[0].port", "Invalid value: 70000: must be between 1 and 65535, inclusive"),
        ({"from": [{}]}, "from[0]", "Required value: must specify a peer"),
        (
            {"from": [{"ipBlock": {"cidr": "x"}}]},
            "from[0].ipBlock.cidr",
            'Invalid value: "x": must be a valid CIDR value, (e.g. 10.9.8.0/24 or 2001:db8::/64)',
        ),
    ],
)
def test_a_network_policy_is_told_what_is_wrong_with_it(rule, field, message):
    told = complaints(POLICIES, named(spec={"podSelector": {}, "ingress": [rule]}))
    assert told == {f"spec.ingress[0].{field}": message}


def test_a_lease_lasts_and_counts():
    assert created(LEASES, named())["spec"] == {}
    told = complaints(LEASES, named(spec={"leaseDurationSeconds": 0, "leaseTransitions": -1}))
    assert told == {
        "spec.leaseDurationSeconds": "Invalid value: 0: must be greater than 0",
        "spec.leaseTransitions": "Invalid value: -1: must be greater than or equal to 0",
    }


def test_a_runtime_class_has_a_handler():
    assert complaints(RUNTIMES, named()) == {"handler": "Required value"}


def test_a_claim_says_how_much_and_how_it_is_shared():
    assert set(complaints(CLAIMS, named())) == {"spec.accessModes", "spec.resources[storage]"}
    spec = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1024Mi"}}}
    made = created(CLAIMS, named(spec=spec))
    assert made["spec"]["resources"]["requests"] == {"storage": "1Gi"}
    assert made["status"] == {"phase": "Pending"}
