"""Each operation of a JSON patch, and that it fails as a whole."""

import copy

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tessera.admission.patching import APPENDED, Change, make_patch
from tessera.embedded.patches.json_patch import json_patch
from tessera.embedded.refusals import ApiRefusal

SETTINGS = {
    "data": {"colour": "red", "shape": "round"},
    "list": [1, 2, 3],
    "odd": {"a/b": 1, "c~d": 2, "~1": 3},
    "rows": [{"a": 1}, {"b": 2}],
}


def op(name, path, **more):
    return {"op": name, "path": path} | {key.removesuffix("_"): value for key, value in more.items()}


@pytest.mark.parametrize(
    ("operation", "key", "becomes"),
    [
        (op("add", "/data/size", value="s"), "data", {"colour": "red", "shape": "round", "size": "s"}),
        (op("add", "/data/colour", value="blue"), "data", {"colour": "blue", "shape": "round"}),
        (op("add", "/list/0", value=0), "list", [0, 1, 2, 3]),
        (op("add", "/list/3", value=4), "list", [1, 2, 3, 4]),
        (op("add", "/list/-", value=4), "list", [1, 2, 3, 4]),
        (op("add", "/data", value=None), "data", None),
        (op("replace", "/data/colour", value="blue"), "data", {"colour": "blue", "shape": "round"}),
        (op("replace", "/list/2", value=9), "list", [1, 2, 9]),
        (op("remove", "/data/colour"), "data", {"shape": "round"}),
        (op("remove", "/list/0"), "list", [2, 3]),
        (op("move", "/data/form", from_="/data/shape"), "data", {"colour": "red", "form": "round"}),
        (op("move", "/list/0", from_="/list/2"), "list", [3, 1, 2]),
        (op("move", "/list/2", from_="/list/2"), "list", [1, 2, 3]),
        (
            op("copy", "/data/border", from_="/data/colour"),
            "data",
            {"colour": "red", "shape": "round", "border": "red"},
        ),
        (op("test", "/list", value=[1, 2, 3]), "list", [1, 2, 3]),
        (op("test", "/absent", value=None), "list", [1, 2, 3]),
        (op("replace", "/odd/a~1b", value=0), "odd", {"a/b": 0, "c~d": 2, "~1": 3}),
        (op("replace", "/odd/c~0d", value=0), "odd", {"a/b": 1, "c~d": 0, "~1": 3}),
        (op("remove", "/odd/~01"), "odd", {"a/b": 1, "c~d": 2}),
    ],
)
def test_an_operation_changes_what_it_points_to(operation, key, becomes):
    assert json_patch(SETTINGS, [operation]) == SETTINGS | {key: becomes}


@pytest.mark.parametrize(
    "operation",
    [
        op("add", "/absent/size", value="s"),
        op("add", "/list/4", value=0),
        op("add", "/list/01", value=0),
        op("add", "/list/x", value=0),
        op("add", "/data/colour/red", value=0),
        op("add", "/data/size"),
        op("add", "data", value=0),
        op("replace", "/absent", value=0),
        op("replace", "/list/-", value=0),
        op("remove", "/absent"),
        op("remove", "/list/3"),
        op("remove", "/list/-1"),
        op("move", "/data/x", from_="/absent"),
        op("move", "/data/x/y", from_="/data"),
        op("move", "/rows/0/x", from_="/rows/0"),
        op("copy", "/data/x", from_="/absent"),
        op("copy", "/data/x"),
        op("test", "/data/colour", value="blue"),
        op("test", "/list/0", value=True),
        op("test", "/list", value=[1, 2]),
        op("test", "/absent", value=0),
        op("remove", ""),
        op("replace", "", value=[]),
        op("increase", "/list/0"),
        {"path": "/list/0"},
        "remove",
    ],
)
def test_what_cannot_be_done_is_invalid_and_undoes_what_came_before(operation):
    before = copy.deepcopy(SETTINGS)
    with pytest.raises(ApiRefusal) as refusal:
        json_patch(before, [op("add", "/data/size", value="s"), operation])
    assert (refusal.value.code, refusal.value.reason) == (422, "Invalid")
    assert before == SETTINGS


def test_the_refusal_says_which_operation_and_what_was_there():
    with pytest.raises(
        ApiRefusal, match=r'operation 1 of the JSON patch tests /data/shape for "square", and there is "round"'
    ):
        json_patch(SETTINGS, [op("remove", "/list"), op("test", "/data/shape", value="square")])


def test_a_patch_that_is_no_list_is_a_bad_request():
    with pytest.raises(ApiRefusal) as refusal:
        json_patch(SETTINGS, {"op": "remove", "path": "/data"})
    assert refusal.value.code == 400


def test_the_whole_document_can_be_replaced():
    assert json_patch(SETTINGS, [op("replace", "", value={"a": 1})]) == {"a": 1}


def test_what_was_copied_changes_alone():
    operations = [op("copy", "/twin", from_="/data"), op("remove", "/twin/colour")]
    assert json_patch(SETTINGS, operations)["data"] == SETTINGS["data"]


def test_a_value_of_the_patch_stays_with_the_patch():
    value = {"a": 1}
    patched = json_patch({}, [op("add", "/x", value=value)])
    patched["x"]["a"] = 2
    assert value == {"a": 1}


names = st.text(max_size=3).filter(lambda name: name != APPENDED)  # as a key it would mean the end of a list
values = st.recursive(
    st.none() | st.booleans() | st.integers(-99, 99) | st.text(max_size=3),
    lambda below: st.lists(below, max_size=3) | st.dictionaries(names, below, max_size=3),
    max_leaves=8,
)
documents = st.dictionaries(names, st.dictionaries(names, values, max_size=3), max_size=3)


@given(documents, st.lists(st.tuples(names, names, values.filter(lambda value: value is not None)), max_size=4))
def test_a_patch_made_for_changes_makes_them(document, changes):
    before = copy.deepcopy(document)
    patch = make_patch(document, [Change((first, second), value) for first, second, value in changes])
    patched = json_patch(document, [op(made.op, made.path, value=made.value) for made in patch])
    wanted = {(first, second): value for first, second, value in changes}
    assert {place: patched[place[0]][place[1]] for place in wanted} == wanted
    assert document == before
