"""Selectors as queries write them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tessera.embedded.kinds import Kind
from tessera.embedded.refusals import ApiRefusal
from tessera.embedded.serving.selectors import read_labels, read_selection
from tessera.embedded.store import Key, Record

PODS = Kind(version="v1", kind="Pod", plural="pods")
NODES = Kind(version="v1", kind="Node", plural="nodes", is_namespaced=False)
KEYS = st.from_regex(r"[a-z]([a-z0-9.-]*[a-z0-9])?(/[a-z]([a-z0-9]*))?", fullmatch=True)
VALUES = st.from_regex(r"([A-Za-z0-9]([A-Za-z0-9_.-]*[A-Za-z0-9])?)?", fullmatch=True)


@pytest.mark.parametrize(
    ("selector", "labels", "matches"),
    [
        ("", {}, True),
        ("a=1", {"a": "1"}, True),
        ("a==1", {"a": "2"}, False),
        ("a!=1", {"a": "2"}, True),
        ("a!=1", {}, True),
        ("a=", {"a": ""}, True),
        ("a=", {}, False),
        ("a", {"a": ""}, True),
        ("!a", {"a": ""}, False),
        (" ! a ", {}, True),
        ("a in (1, 2)", {"a": "2"}, True),
        ("a notin (1,2)", {"a": "2"}, False),
        ("a notin (1)", {}, True),
        ("a in (1,2),b", {"a": "1", "b": "x"}, True),
        ("a in (1,2),b", {"a": "1"}, False),
        ("example.com/gpu=on", {"example.com/gpu": "on"}, True),
    ],
)
def test_a_label_selector_means_what_it_says(selector, labels, matches):
    assert read_labels(selector).match(labels) is matches


@given(st.dictionaries(KEYS, VALUES, min_size=1, max_size=4))
def test_labels_written_as_equalities_select_themselves(labels):
    selector = read_labels(",".join(f"{key}={value}" for key, value in labels.items()))
    assert selector.match(labels)
    changed = dict(labels)
    changed[next(iter(labels))] += "x"
    assert not selector.match(changed)


@pytest.mark.parametrize("selector", ["a in", "a in 1", "=1", "a=b c", "a,,b", "a in (1", "a=1=2"])
def test_what_cannot_be_read_is_a_bad_request(selector):
    with pytest.raises(ApiRefusal) as refusal:
        read_labels(selector)
    assert refusal.value.code == 400


def record(document, *, namespace="default", name="a"):
    document = {"metadata": {"name": name, "namespace": namespace}} | document
    return Record.of(Key("pods", namespace, name), 7, document)


@pytest.mark.parametrize(
    ("selector", "matches"),
    [
        ("metadata.name=a", True),
        ("metadata.name!=a", False),
        ("metadata.namespace=default", True),
        ("spec.nodeName=n1", True),
        ("spec.nodeName!=n1", False),
        ("spec.hostNetwork=false", True),
        ("status.phase=", True),
        ("metadata.name=a,spec.nodeName=", False),
    ],
)
def test_a_field_selector_means_what_it_says(selector, matches):
    selection = read_selection(PODS, "", selector)
    assert selection
    assert selection.match_record(record({"spec": {"nodeName": "n1"}})) is matches


def test_both_selectors_must_hold():
    selection = read_selection(PODS, "app=web", "metadata.name=a")
    assert selection
    labelled = {"metadata": {"name": "a", "namespace": "default", "labels": {"app": "web"}}}
    assert selection.match_record(record(labelled))
    assert not selection.match_record(record(labelled, name="b"))
    assert not selection.match_record(record({}))


@pytest.mark.parametrize(("kind", "selector"), [(NODES, "spec.nodeName=n"), (PODS, "spec.colour=red"), (PODS, "spec")])
def test_only_known_fields_select(kind, selector):
    with pytest.raises(ApiRefusal) as refusal:
        read_selection(kind, "", selector)
    assert refusal.value.code == 400


def test_without_selectors_nothing_is_selected_by():
    assert read_selection(PODS, "", "") is None
