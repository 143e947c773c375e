"""Which fields a document has, states, and changes, under every shape that a schema can give them."""

import pytest

from tessera.embedded.ownership.shapes import shape_of
from tessera.embedded.ownership.surveying import compare, everything, repeated, stated
from tests.unit.embedded.ownership.drawn import SCHEMA

SHAPE = shape_of(SCHEMA)


def of_spec(spec):
    return stated({"spec": spec}, SHAPE).get("f:spec")


@pytest.mark.parametrize(
    ("spec", "fields"),
    [
        ({"replicas": 1}, {"f:replicas": {}}),
        ({"replicas": None}, {"f:replicas": {}}),
        ({"strategy": {"type": "x"}}, {"f:strategy": {"f:type": {}}}),
        ({"strategy": {}}, {"f:strategy": {}}),
        ({"selector": {"a": "b"}}, {"f:selector": {}}),
        ({"args": ["a", "b"]}, {"f:args": {}}),
        ({"tags": ["a", "b"]}, {"f:tags": {'v:"a"': {}, 'v:"b"': {}}}),
        ({"tags": []}, {"f:tags": {}}),
        ({"pools": {"x": {"size": 1}}}, {"f:pools": {"f:x": {".": {}, "f:size": {}}}}),
        ({"anything": {"a": {"b": [1]}}}, {"f:anything": {"f:a": {".": {}, "f:b": {}}}}),
        (
            {"containers": [{"name": "m", "ports": [{"port": 1}, {"port": 1, "protocol": "UDP"}]}]},
            {
                "f:containers": {
                    'k:{"name":"m"}': {
                        ".": {},
                        "f:name": {},
                        "f:ports": {
                            'k:{"port":1,"protocol":"TCP"}': {".": {}, "f:port": {}},
                            'k:{"port":1,"protocol":"UDP"}': {".": {}, "f:port": {}, "f:protocol": {}},
                        },
                    }
                }
            },
        ),
    ],
)
def test_an_apply_states_leaves_elements_and_chosen_keys(spec, fields):
    assert of_spec(spec) == fields


def test_everything_is_all_the_way_down_and_itself():
    document = {"spec": {"tags": ["a"], "args": ["a"], "selector": {"a": "b"}, "strategy": {"type": "x"}}}
    assert everything(document, SHAPE)["f:spec"] == {
        ".": {},
        "f:tags": {".": {}, 'v:"a"': {}},
        "f:args": {},
        "f:selector": {},
        "f:strategy": {".": {}, "f:type": {}},
    }


@pytest.mark.parametrize(
    ("before", "after", "written", "removed"),
    [
        ({"replicas": 1}, {"replicas": 1}, {}, {}),
        ({"replicas": 1}, {"replicas": 2}, {"f:replicas": {}}, {}),
        ({"replicas": 1}, {}, {}, {"f:replicas": {}}),
        ({}, {"strategy": {"type": "x"}}, {"f:strategy": {".": {}, "f:type": {}}}, {}),
        ({"strategy": {}}, {"strategy": {"type": "x"}}, {"f:strategy": {"f:type": {}}}, {}),
        ({"strategy": None}, {"strategy": {"type": "x"}}, {"f:strategy": {".": {}, "f:type": {}}}, {}),
        ({"strategy": {"type": "x"}}, {"strategy": None}, {"f:strategy": {}}, {"f:strategy": {"f:type": {}}}),
        ({"strategy": {"type": "x", "surge": 1}}, {"strategy": {"surge": 1}}, {}, {"f:strategy": {"f:type": {}}}),
        ({"args": ["a"]}, {"args": ["a", "b"]}, {"f:args": {}}, {}),
        ({"selector": {"a": "1"}}, {"selector": {"b": "1"}}, {"f:selector": {}}, {}),
        ({"tags": ["a", "b"]}, {"tags": ["c", "b"]}, {"f:tags": {'v:"c"': {}}}, {"f:tags": {'v:"a"': {}}}),
        ({"tags": ["a", "b"]}, {"tags": ["b", "a"]}, {}, {}),
        (
            {"anything": {"a": {"b": 1}}},
            {"anything": {"a": [1]}},
            {"f:anything": {"f:a": {}}},
            {"f:anything": {"f:a": {"f:b": {}}}},
        ),
    ],
)
def test_changes_are_told_apart_field_by_field(before, after, written, removed):
    changes = compare({"spec": before}, {"spec": after}, SHAPE)
    assert changes.written.get("f:spec", {}) == written
    assert changes.removed.get("f:spec", {}) == removed


def test_elements_of_one_key_are_owned_together_until_they_are_told_apart():
    def env(*values):
        return {"spec": {"containers": [{"name": "m", "env": [{"name": "A", "value": value} for value in values]}]}}

    def of_env(fields):
        return fields["f:spec"]["f:containers"]['k:{"name":"m"}']["f:env"]

    twice = compare(env("1"), env("1", "2"), SHAPE)
    assert of_env(twice.written) == {'k:{"name":"A"}': {}}
    once = compare(env("1", "2"), env("1"), SHAPE)
    assert of_env(once.written) == {'k:{"name":"A"}': {".": {}, "f:name": {}, "f:value": {}}}
    assert of_env(everything(env("1", "2"), SHAPE))['k:{"name":"A"}'] == {}
    changed = compare(env("1", "2", "3"), env("1", "2", "4"), SHAPE)
    assert of_env(changed.written) == {'k:{"name":"A"}': {}}


def test_an_element_without_a_key_is_owned_by_its_place():
    document = {"spec": {"containers": [7, {"image": "i"}]}}
    assert everything(document, SHAPE)["f:spec"]["f:containers"] == {
        ".": {},
        "i:0": {},
        "i:1": {".": {}, "f:image": {}},
    }


def test_every_repeated_element_is_found_with_its_list():
    container = {"name": "m", "env": [{"name": "A"}, {"name": "A"}]}
    found = repeated({"spec": {"containers": [container], "tags": ["a", "b", "a"], "args": ["a", "a"]}}, SHAPE)
    assert list(found) == [('.spec.containers[name="m"].env', '[name="A"]'), (".spec.tags", '[="a"]')]
