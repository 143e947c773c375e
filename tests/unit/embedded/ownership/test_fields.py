"""Sets of fields: their algebra, how they are told, and how a client may spell them."""

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tessera.embedded.ownership.fields import (
    UnreadableFields,
    difference,
    intersection,
    paths,
    read_fields,
    union,
)

steps = st.sampled_from(["f:a", "f:b", "f:c", 'k:{"name":"x","port":1}', 'v:"x"', "v:1", "i:0"])
trees = st.recursive(
    st.just({}),
    lambda below: st.dictionaries(steps, below, min_size=1, max_size=3).flatmap(
        lambda nodes: st.sampled_from([nodes, {".": {}} | nodes])
    ),
    max_leaves=10,
)
sets = st.dictionaries(steps, trees, max_size=4)


def members(fields):
    return set(paths(fields))


@given(sets, sets)
def test_sets_are_joined_parted_and_crossed_field_by_field(one, other):
    assert members(union(one, other)) == members(one) | members(other)
    assert members(difference(one, other)) == members(one) - members(other)
    assert members(intersection(one, other)) == members(one) & members(other)


@given(sets, sets)
def test_sets_of_the_same_fields_are_spelled_alike(one, other):
    assert union(one, other) == union(other, one)
    assert union(difference(one, other), intersection(one, other)) == one


@given(sets)
def test_a_set_is_read_back_as_it_was_written(fields):
    assert read_fields(msgspec.json.decode(msgspec.json.encode(fields))) == fields


def test_a_field_that_is_taken_leaves_what_is_below_it():
    assert difference({"f:a": {".": {}, "f:b": {}}}, {"f:a": {}}) == {"f:a": {"f:b": {}}}
    assert difference({"f:a": {"f:b": {}}}, {"f:a": {}}) == {"f:a": {"f:b": {}}}
    assert difference({"f:a": {".": {}, "f:b": {}}}, {"f:a": {"f:b": {}}}) == {"f:a": {}}


def test_paths_are_told_as_kubernetes_tells_them():
    ports = {".": {}, 'k:{"containerPort":80,"protocol":"TCP"}': {}}
    container = {"f:image": {}, "f:ports": ports, "f:args": {"i:0": {}}, "f:tags": {'v:"x"': {}, "v:1": {}}}
    assert list(paths({"f:spec": {"f:containers": {'k:{"name":"main"}': container}}})) == [
        '.spec.containers[name="main"].args[0]',
        '.spec.containers[name="main"].image',
        '.spec.containers[name="main"].ports',
        '.spec.containers[name="main"].ports[containerPort=80,protocol="TCP"]',
        '.spec.containers[name="main"].tags[="x"]',
        '.spec.containers[name="main"].tags[=1]',
    ]


@pytest.mark.parametrize(
    ("sent", "read"),
    [
        ({'k:{ "b": 1, "a": "x" }': {}}, {'k:{"a":"x","b":1}': {}}),
        ({'v: "x"': {}, "v:true": {}, "i:03": {}}, {'v:"x"': {}, "v:true": {}, "i:3": {}}),
        ({"f:a:b": {"f:": {}}}, {"f:a:b": {"f:": {}}}),
        ({"z:new": {"f:a": {}}, "f:a": {}}, {"f:a": {}}),
        ({".": {}, "f:a": {".": {}}}, {"f:a": {".": {}}}),
    ],
)
def test_a_step_is_read_however_it_is_spelled(sent, read):
    assert read_fields(sent) == read


@pytest.mark.parametrize("sent", [[], "x", {"a": {}}, {"f:a": 1}, {"k:[1]": {}}, {"k:{": {}}, {"v:": {}}, {"i:x": {}}])
def test_what_is_no_set_of_fields_is_told_apart(sent):
    with pytest.raises(UnreadableFields):
        read_fields(sent)
