import base64

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tessera.embedded.runtime.environment import Reference, container_environment, expand, references_of
from tessera.embedded.runtime.fields import Place, field_value, resource_value
from tessera.errors import StartRefused

PLACE = Place(node="node-a", host_address="127.0.0.1", pod_address="127.64.0.1", cpu_milli=2500, memory_bytes=3 << 30)
POD = {
    "metadata": {"name": "web", "namespace": "team", "uid": "u1", "labels": {"b": 'say "hi"', "a": "1"}},
    "spec": {"serviceAccountName": "robot"},
}


def environment(container, known=None, base=None):
    return container_environment(POD, container, PLACE, known or {}, base or {})


@pytest.mark.parametrize(
    ("text", "expanded"),
    [
        ("$(ONE)2", "12"),
        ("$(NONE)", "$(NONE)"),
        ("$$(ONE)", "$(ONE)"),
        ("$$$(ONE)", "$1"),
        ("a$b $ONE", "a$b $ONE"),
        ("$(ONE", "$(ONE"),
        ("price: 5$", "price: 5$"),
    ],
)
def test_references_are_expanded_as_kubernetes_does(text, expanded):
    assert expand(text, {"ONE": "1"}) == expanded


@given(st.text())
def test_text_without_a_dollar_sign_stays_as_it_is(text):
    assert expand(text.replace("$", ""), {"A": "x"}) == text.replace("$", "")


def test_a_variable_refers_to_earlier_ones_and_to_those_that_all_have():
    env = [{"name": "A", "value": "$(HOST)-$(B)"}, {"name": "B", "value": "$(A)"}]
    assert environment({"env": env}, base={"HOST": "h"}) == {"HOST": "h", "A": "h-$(B)", "B": "h-$(B)"}


def test_single_variables_override_whole_sources_and_a_prefix_is_put_before():
    known = {("configmap", "c"): {"data": {"K": "map", "L": "map"}}}
    container = {"envFrom": [{"prefix": "X_", "configMapRef": {"name": "c"}}], "env": [{"name": "X_K", "value": "own"}]}
    assert environment(container, known) == {"X_K": "own", "X_L": "map"}


def test_of_a_whole_config_map_texts_alone_become_variables():
    known = {("configmap", "c"): {"data": {"K": "text"}, "binaryData": {"B": base64.b64encode(b"\0\1").decode()}}}
    assert environment({"envFrom": [{"configMapRef": {"name": "c"}}]}, known) == {"K": "text"}


def test_a_secret_is_decoded():
    known = {("secret", "s"): {"data": {"k": base64.b64encode(b"abc").decode()}}}
    container = {"env": [{"name": "A", "valueFrom": {"secretKeyRef": {"name": "s", "key": "k"}}}]}
    assert environment(container, known) == {"A": "abc"}


def test_what_is_optional_and_absent_is_left_out():
    env = [{"name": "A", "valueFrom": {"secretKeyRef": {"name": "s", "key": "k", "optional": True}}}]
    assert environment({"env": env, "envFrom": [{"configMapRef": {"name": "c", "optional": True}}]}) == {}


def test_what_is_needed_and_absent_refuses_the_start():
    with pytest.raises(StartRefused, match='secret "s" not found'):
        environment({"envFrom": [{"secretRef": {"name": "s"}}]})
    known = {("configmap", "c"): {"data": {}}}
    with pytest.raises(StartRefused, match="couldn't find key k in ConfigMap team/c"):
        environment({"env": [{"name": "A", "valueFrom": {"configMapKeyRef": {"name": "c", "key": "k"}}}]}, known)


def test_everything_that_must_be_fetched_is_named():
    container = {
        "envFrom": [{"configMapRef": {"name": "c", "optional": True}}],
        "env": [{"name": "A", "valueFrom": {"secretKeyRef": {"name": "s", "key": "k"}}}, {"name": "B", "value": "x"}],
    }
    assert list(references_of(container)) == [Reference("configmap", "c", True), Reference("secret", "s", False)]


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("metadata.name", "web"),
        ("metadata.labels['a']", "1"),
        ("metadata.labels['none']", ""),
        ("metadata.annotations['gpu.scheduling/allocated']", ""),
        ("metadata.labels", 'a="1"\nb="say \\"hi\\""'),
        ("spec.nodeName", "node-a"),
        ("spec.serviceAccountName", "robot"),
        ("status.podIP", "127.64.0.1"),
    ],
)
def test_a_pod_can_ask_about_itself(path, value):
    assert field_value(POD, PLACE, path) == value


def test_an_unknown_field_is_refused_with_those_that_there_are():
    with pytest.raises(StartRefused, match=r'fieldRef is "spec.nothing", expected one of metadata.name'):
        field_value(POD, PLACE, "spec.nothing")


@pytest.mark.parametrize(
    ("resource", "divisor", "value"),
    [
        ("limits.cpu", "", "2"),
        ("limits.cpu", "1m", "1500"),
        ("requests.cpu", "1m", "0"),
        ("limits.memory", "1Mi", "100"),
        ("limits.memory", "1Gi", "1"),
        ("limits.nvidia.com/gpu", "", "2"),
    ],
)
def test_resources_are_counted_in_the_divisor_rounded_up(resource, divisor, value):
    container = {"resources": {"limits": {"cpu": "1500m", "memory": "100Mi", "nvidia.com/gpu": "2"}}}
    assert resource_value(container, PLACE, resource, divisor) == value


def test_without_limits_a_container_may_use_what_the_machine_has():
    assert resource_value({}, PLACE, "limits.cpu", "") == "3"
    assert resource_value({}, PLACE, "limits.memory", "1Gi") == "3"
