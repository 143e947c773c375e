"""Merge patch: the examples of RFC 7386, and what follows from them."""

import copy

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tessera.embedded.patches.merge_patch import merge_patch


@pytest.mark.parametrize(
    ("document", "patch", "becomes"),
    [
        ({"a": "b"}, {"a": "c"}, {"a": "c"}),
        ({"a": "b"}, {"b": "c"}, {"a": "b", "b": "c"}),
        ({"a": "b"}, {"a": None}, {}),
        ({"a": "b", "b": "c"}, {"a": None}, {"b": "c"}),
        ({"a": ["b"]}, {"a": "c"}, {"a": "c"}),
        ({"a": "c"}, {"a": ["b"]}, {"a": ["b"]}),
        ({"a": {"b": "c"}}, {"a": {"b": "d", "c": None}}, {"a": {"b": "d"}}),
        ({"a": [{"b": "c"}]}, {"a": [1]}, {"a": [1]}),
        (["a", "b"], ["c", "d"], ["c", "d"]),
        ({"a": "b"}, ["c"], ["c"]),
        ({"a": "foo"}, None, None),
        ({"a": "foo"}, "bar", "bar"),
        ({"e": None}, {"a": 1}, {"e": None, "a": 1}),
        ([1, 2], {"a": "b", "c": None}, {"a": "b"}),
        ({}, {"a": {"bb": {"ccc": None}}}, {"a": {"bb": {}}}),
    ],
)
def test_the_examples_of_the_standard_hold(document, patch, becomes):
    assert merge_patch(document, patch) == becomes


values = st.recursive(
    st.none() | st.integers(0, 9) | st.text(max_size=2),
    lambda below: st.lists(below, max_size=2) | st.dictionaries(st.sampled_from("abc"), below, max_size=3),
    max_leaves=8,
)


@given(values, values)
def test_merging_again_changes_nothing_more(document, patch):
    once = merge_patch(document, patch)
    assert merge_patch(once, patch) == once


@given(values, values)
def test_the_result_shares_nothing_with_what_was_given(document, patch):
    before = copy.deepcopy((document, patch))
    spoil(merge_patch(document, patch))
    assert (document, patch) == before


def spoil(value):
    if isinstance(value, dict):
        for below in value.values():
            spoil(below)
        value["spoilt"] = True
    elif isinstance(value, list):
        for below in value:
            spoil(below)
        value.append("spoilt")
