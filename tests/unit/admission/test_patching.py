"""The smallest patch that makes a change."""

import pytest

from tessera.admission.patching import APPENDED, Change, make_patch
from tessera.model.admission import Operation


@pytest.mark.parametrize(
    ("document", "path", "operation"),
    [
        ({"a": "1"}, ("a",), Operation("replace", "/a", "2")),
        ({}, ("a",), Operation("add", "/a", "2")),
        ({"a": None}, ("a",), Operation("add", "/a", "2")),
        ({}, ("a", "b", "c"), Operation("add", "/a", {"b": {"c": "2"}})),
        ({"a": None}, ("a", "b"), Operation("add", "/a", {"b": "2"})),
        ({"a": {}}, ("a", "b"), Operation("add", "/a/b", "2")),
        ({"a": {}}, ("a", "x.io/b~c"), Operation("add", "/a/x.io~1b~0c", "2")),
        ({"a": ["1"]}, ("a", 0), Operation("replace", "/a/0", "2")),
        ({"a": ["1"]}, ("a", APPENDED), Operation("add", "/a/-", "2")),
        ({}, ("a", APPENDED), Operation("add", "/a", ["2"])),
    ],
)
def test_a_change_is_one_operation(document, path, operation):
    assert make_patch(document, [Change(path, "2")]) == (operation,)


@pytest.mark.parametrize("document", [{"a": {"b": "2"}}, {"a": {"b": "2", "c": 1}}])
def test_what_stands_there_already_costs_nothing(document):
    assert make_patch(document, [Change(("a", "b"), "2")]) == ()


def test_a_number_is_not_the_text_that_looks_like_it():
    assert make_patch({"a": 2}, [Change(("a",), "2")]) == (Operation("replace", "/a", "2"),)


def test_a_parent_is_created_once_for_several_values():
    changes = [Change(("env", APPENDED), "1"), Change(("env", APPENDED), "2"), Change(("m", "a"), 1)]
    assert make_patch({"m": {}}, changes) == (
        Operation("add", "/env", ["1"]),
        Operation("add", "/env/-", "2"),
        Operation("add", "/m/a", 1),
    )


def test_the_document_stays_as_it_is():
    document = {"a": {"b": ["1"]}}
    make_patch(document, [Change(("a", "b", APPENDED), "2"), Change(("a", "c"), "3")])
    assert document == {"a": {"b": ["1"]}}
