"""What an apply brings in, in which order, and what it takes out."""

import pytest

from tessera.embedded.ownership.merging import merge, prune
from tessera.embedded.ownership.shapes import shape_of
from tessera.embedded.ownership.surveying import everything, stated
from tests.unit.embedded.ownership.drawn import SCHEMA

SPEC = shape_of(SCHEMA).field("spec")


@pytest.mark.parametrize(
    ("live", "applied", "merged"),
    [
        ({"replicas": 1}, {}, {"replicas": 1}),
        ({"replicas": 1}, {"replicas": 2}, {"replicas": 2}),
        ({"strategy": {"type": "x"}}, {"strategy": {"surge": 1}}, {"strategy": {"type": "x", "surge": 1}}),
        ({"selector": {"a": "1"}}, {"selector": {"b": "1"}}, {"selector": {"b": "1"}}),
        ({"args": ["a"]}, {"args": ["b"]}, {"args": ["b"]}),
        ({"args": ["a"]}, {"args": []}, {"args": []}),
        ({"tags": ["a"]}, {"tags": []}, {"tags": ["a"]}),
        ({"strategy": "odd"}, {"strategy": {"surge": 1}}, {"strategy": {"surge": 1}}),
    ],
)
def test_what_is_applied_wins_and_the_rest_stays(live, applied, merged):
    assert merge(live, applied, SPEC) == merged


@pytest.mark.parametrize(
    ("live", "applied", "merged"),
    [
        ("ab", "cd", "abcd"),
        ("ab", "b", "ab"),
        ("ab", "ba", "ba"),
        ("abc", "cx", "abcx"),
        ("abc", "xc", "abxc"),
        ("abc", "xa", "xabc"),
        ("axb", "bya", "xbya"),
        ("", "ab", "ab"),
        ("ab", "", "ab"),
    ],
)
def test_elements_come_in_the_order_applied_and_others_keep_their_place(live, applied, merged):
    assert merge({"tags": list(live)}, {"tags": list(applied)}, SPEC) == {"tags": list(merged)}


def test_what_is_applied_replaces_elements_that_cannot_be_told_apart():
    live = {"containers": [{"name": "m", "image": "1"}, {"name": "m", "image": "2"}, {"name": "n"}]}
    merged = merge(live, {"containers": [{"name": "m"}]}, SPEC)
    assert merged == {"containers": [{"name": "m"}, {"name": "n"}]}


def pruned(live, once, kept):
    return prune(live, stated(once, SPEC), stated(kept, SPEC), SPEC)


@pytest.mark.parametrize(
    ("live", "once", "kept", "left"),
    [
        ({"replicas": 1}, {"replicas": 1}, {}, {}),
        ({"replicas": 1}, {"replicas": 1}, {"replicas": 1}, {"replicas": 1}),
        ({"replicas": 1, "args": ["a"]}, {"replicas": 1}, {}, {"args": ["a"]}),
        (
            {"strategy": {"type": "x", "surge": 1}},
            {"strategy": {"type": "x"}},
            {"strategy": {"surge": 1}},
            {"strategy": {"surge": 1}},
        ),
        ({"strategy": {"type": "x", "surge": 1}}, {"strategy": {"type": "x"}}, {}, {}),
        ({"args": ["a"]}, {"args": ["a"]}, {}, {}),
        ({"selector": {"a": "1"}}, {"selector": {"a": "1"}}, {}, {}),
        ({"tags": ["a", "b"]}, {"tags": ["a"]}, {"tags": ["b"]}, {"tags": ["b"]}),
        ({"tags": ["a", "b"]}, {"tags": ["a", "b"]}, {}, {}),
        (
            {"pools": {"x": {"size": 1, "zone": "z"}, "y": {}}},
            {"pools": {"x": {"size": 1}}},
            {"pools": {"y": {}}},
            {"pools": {"y": {}}},
        ),
    ],
)
def test_what_was_applied_once_and_nobody_keeps_goes(live, once, kept, left):
    assert pruned(live, once, kept) == left


def test_an_element_goes_as_a_whole_with_what_the_server_filled_in():
    live = {"containers": [{"name": "m", "image": "filled-in"}, {"name": "n"}]}
    other = {"containers": [{"name": "n"}]}
    assert pruned(live, {"containers": [{"name": "m"}]}, other) == other


def test_an_element_that_another_keeps_loses_the_fields_of_one():
    live = {"containers": [{"name": "m", "image": "i", "env": [{"name": "A"}]}]}
    left = pruned(
        live, {"containers": [{"name": "m", "image": "i"}]}, {"containers": [{"name": "m", "env": [{"name": "A"}]}]}
    )
    assert left == {"containers": [{"name": "m", "env": [{"name": "A"}]}]}


def test_an_element_goes_though_another_has_written_something_in_it():
    live = {"containers": [{"name": "m", "image": "i"}, {"name": "n"}]}
    written = {"f:containers": {'k:{"name":"m"}': {"f:image": {}}}}
    assert prune(live, stated({"containers": [{"name": "m"}]}, SPEC), written, SPEC) == {"containers": [{"name": "n"}]}


def test_what_holds_nothing_any_more_goes_unless_it_is_kept_itself():
    live = {"strategy": {"type": "x"}, "pools": {"x": {}}}
    once = everything(live, SPEC)
    assert prune(live, once, {"f:strategy": {}, "f:pools": {"f:y": {}}}, SPEC) == {"strategy": {}}
