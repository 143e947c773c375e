"""Whom a webhook or a policy concerns."""

import msgspec
import pytest

from tessera.embedded.admitting.matching import all_hold, is_exempt, is_matched_by, is_named_by, is_selected_by
from tessera.embedded.admitting.registrations import Matching, ResourceRule
from tessera.embedded.kinds import Kind
from tessera.embedded.rules import RuleFailed, compile_rule
from tests.unit.embedded.admitting.requesting import (
    CONFIG_MAPS,
    LEASES,
    NAMESPACES,
    NODES,
    PODS,
    Cluster,
    config_map,
    creation,
    pod,
    request,
    update,
)

EVERYTHING = {"operations": ["*"], "apiGroups": ["*"], "apiVersions": ["*"], "resources": ["*/*"]}


def rule(**fields):
    return msgspec.convert(EVERYTHING | fields, ResourceRule)


@pytest.mark.parametrize(
    ("fields", "is_named"),
    [
        ({}, True),
        ({"operations": ["CREATE", "UPDATE"]}, True),
        ({"operations": ["UPDATE"]}, False),
        ({"apiGroups": [""]}, True),
        ({"apiGroups": ["apps"]}, False),
        ({"apiVersions": ["v1beta1"]}, False),
        ({"resources": ["pods"]}, True),
        ({"resources": ["*"]}, True),
        ({"resources": ["pods/status"]}, False),
        ({"resources": ["pods/*"]}, True),
        ({"resources": ["configmaps", "pods"]}, True),
        ({"scope": "Namespaced"}, True),
        ({"scope": "Cluster"}, False),
        ({"resourceNames": ["worker"]}, True),
        ({"resourceNames": ["other"]}, False),
    ],
)
def test_a_rule_names_a_creation_of_a_pod(fields, is_named):
    assert is_named_by(rule(**fields), creation(PODS, pod())) is is_named


@pytest.mark.parametrize(
    ("pattern", "is_named"),
    [("pods", False), ("*", False), ("pods/binding", True), ("pods/*", True), ("*/binding", True), ("*/*", True)],
)
def test_a_rule_names_a_subresource(pattern, is_named):
    assert is_named_by(rule(resources=[pattern]), creation(PODS, pod(), subresource="binding")) is is_named


def test_a_kind_of_the_cluster_has_the_scope_of_the_cluster():
    node = creation(NODES, {"metadata": {"name": "a"}})
    assert is_named_by(rule(scope="Cluster"), node)
    assert not is_named_by(rule(scope="Namespaced"), node)


def labelled(**labels):
    return {"metadata": {"name": "settings", "labels": labels}}


def test_an_object_is_selected_as_it_was_or_as_it_will_be():
    selector = {"matchLabels": {"a": "1"}}
    changes = {(): False, ("new",): True, ("old",): True}
    for which, is_selected in changes.items():
        old, new = (labelled(a="1") if side in which else labelled() for side in ("old", "new"))
        assert is_selected_by(None, selector, update(CONFIG_MAPS, old, new), Cluster()) is is_selected


def test_what_was_not_there_is_not_selected_by_what_it_lacks():
    selector = {"matchExpressions": [{"key": "a", "operator": "DoesNotExist"}]}
    assert not is_selected_by(None, selector, creation(CONFIG_MAPS, labelled(a="1")), Cluster())
    assert is_selected_by(None, selector, creation(CONFIG_MAPS, labelled()), Cluster())


def test_a_namespace_selector_goes_by_the_labels_of_the_namespace():
    cluster = Cluster()
    ours = {"matchLabels": {"kubernetes.io/metadata.name": "team"}}
    others = {"matchExpressions": [{"key": "kubernetes.io/metadata.name", "operator": "NotIn", "values": ["team"]}]}
    assert is_selected_by(ours, None, creation(CONFIG_MAPS, config_map()), cluster)
    assert not is_selected_by(others, None, creation(CONFIG_MAPS, config_map()), cluster)


def test_a_namespace_is_selected_by_its_own_labels():
    selector = {"matchLabels": {"a": "1"}}
    assert is_selected_by(selector, None, creation(NAMESPACES, labelled(a="1")), Cluster())
    assert not is_selected_by(selector, None, creation(NAMESPACES, labelled()), Cluster())
    assert is_selected_by(selector, None, request("DELETE", NAMESPACES, old_object=labelled(a="1")), Cluster())


def test_what_lives_in_no_namespace_is_not_left_out_by_a_namespace_selector():
    assert is_selected_by({"matchLabels": {"a": "1"}}, None, creation(NODES, labelled()), Cluster())


def test_what_is_excluded_is_not_matched():
    matching = Matching(resource_rules=[rule()], exclude_resource_rules=[rule(resources=["leases"])])
    assert is_matched_by(matching, creation(PODS, pod()), Cluster(), by_default=False)
    assert not is_matched_by(matching, creation(LEASES, labelled()), Cluster(), by_default=False)


@pytest.mark.parametrize("by_default", [True, False])
def test_without_rules_the_default_decides(by_default):
    assert is_matched_by(Matching(), creation(PODS, pod()), Cluster(), by_default=by_default) is by_default


def test_registrations_are_never_intercepted():
    kind = Kind(group="admissionregistration.k8s.io", version="v1", kind="X", plural="xs", is_namespaced=False)
    assert is_exempt(creation(kind, labelled()))
    assert not is_exempt(creation(PODS, pod()))


def conditions(*expressions):
    return [compile_rule(expression, {}) for expression in expressions]


def test_one_condition_that_does_not_hold_decides_past_one_that_fails():
    assert not all_hold(conditions("1 / 0 == 1", "false"), {})
    assert all_hold(conditions("true", "true"), {})
    with pytest.raises(RuleFailed, match="division by zero"):
        all_hold(conditions("1 / 0 == 1", "true"), {})
