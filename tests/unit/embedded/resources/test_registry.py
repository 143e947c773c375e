"""What is served from the start."""

import copy

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tessera.embedded.resources.table import BUILTIN, PODS, subresources_of
from tests.unit.embedded.resources.making import REGISTRY, begun, created, pod, served, workload

SPECS = {
    "pods": pod()["spec"],
    "deployments": workload()["spec"],
    "services": {"ports": [{"port": 80}]},
}


@pytest.mark.parametrize("kind", BUILTIN, ids=lambda kind: kind.resource)
def test_every_kind_of_the_table_is_found_with_schema_and_columns(kind):
    found = REGISTRY.find(kind.group, kind.version, kind.plural)
    assert found is not None
    assert found.kind is kind
    assert found.schema is not None, "kubectl could not validate it"
    assert "Name" in [column.name for column in found.columns]


def test_what_is_not_served_is_not_found():
    assert REGISTRY.find("", "v1", "gadgets") is None
    assert REGISTRY.find("apps", "v1beta1", "deployments") is None


def test_a_pod_has_all_its_doors():
    doors = {door.name: door for door in subresources_of(PODS)}
    assert set(doors) == {"attach", "binding", "eviction", "exec", "log", "portforward", "proxy", "status"}
    assert (doors["eviction"].group, doors["eviction"].kind) == ("policy", "Eviction")
    assert doors["log"].verbs == ("get",)


@pytest.mark.parametrize(
    "plural", ["configmaps", "secrets", "serviceaccounts", "namespaces", "nodes", "pods", "services"]
)
def test_filling_in_twice_is_filling_in_once(plural):
    kind = served(plural)
    once = begun(kind, {"metadata": {"name": "a"}, "spec": copy.deepcopy(SPECS.get(plural, {}))})
    assert kind.strategy.default(copy.deepcopy(once)) == once


CONTAINER = st.fixed_dictionaries(
    {"name": st.just("main"), "image": st.sampled_from(["a", "a:1", "a:latest"])},
    optional={
        "ports": st.lists(st.fixed_dictionaries({"containerPort": st.integers(1, 65535)}), max_size=2),
        "env": st.lists(st.fixed_dictionaries({"name": st.just("A")}, optional={"value": st.text()}), max_size=2),
        "resources": st.fixed_dictionaries(
            {},
            optional={
                "limits": st.dictionaries(
                    st.sampled_from(["cpu", "memory", "nvidia.com/gpu"]), st.integers(1, 10**6) | st.just("1024Mi")
                )
            },
        ),
        "livenessProbe": st.fixed_dictionaries({"tcpSocket": st.just({"port": 1})}),
    },
)
SPEC = st.fixed_dictionaries(
    {"containers": st.lists(CONTAINER, min_size=1, max_size=2)},
    optional={
        "restartPolicy": st.sampled_from(["Always", "Never"]) | st.none(),
        "hostNetwork": st.booleans(),
        "tolerations": st.lists(
            st.fixed_dictionaries({"operator": st.just("Exists")}, optional={"key": st.sampled_from(["a", "b"])}),
            max_size=2,
        ),
        "volumes": st.lists(st.fixed_dictionaries({"name": st.just("v")}), max_size=1),
    },
)


@given(SPEC)
def test_a_pod_is_filled_in_once_and_for_all(spec):
    kind = served("pods")
    once = begun(kind, {"metadata": {"name": "a"}, "spec": spec})
    assert kind.strategy.default(copy.deepcopy(once)) == once


@given(SPEC)
def test_a_template_is_filled_in_once_and_for_all(spec):
    kind = served("deployments", "apps")
    wanted = workload()
    wanted["spec"]["template"]["spec"] = spec
    once = begun(kind, wanted)
    assert kind.strategy.default(copy.deepcopy(once)) == once


@given(SPEC)
def test_an_update_that_changes_nothing_leaves_everything_as_it_was(spec):
    kind = served("pods")
    spec["containers"] = spec["containers"][:1]
    old = created(kind, {"metadata": {"name": "a"}, "spec": spec | {"restartPolicy": "Always"}})
    new = kind.strategy.prepare_update(kind.strategy.default(copy.deepcopy(old)), old)
    assert new == old
    assert kind.strategy.validate_update(new, old) == []
