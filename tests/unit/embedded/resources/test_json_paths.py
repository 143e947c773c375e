"""Where a path leads."""

import pytest

from tessera.embedded.resources.json_paths import WrongPath, find, put, steps_of

OBJECT = {
    "metadata": {"labels": {"a.b/c": "x", "owner": "me"}},
    "spec": {"ids": [3, 1, 2], "items": [{"name": "a", "size": 1}, {"name": "b", "size": 2}]},
}


@pytest.mark.parametrize(
    ("path", "found"),
    [
        (".spec.ids", [[3, 1, 2]]),
        (".spec.ids[0]", [3]),
        (".spec.ids[-1]", [2]),
        (".spec.ids[9]", []),
        (".spec.ids[*]", [3, 1, 2]),
        (".spec.items[*].name", ["a", "b"]),
        ('.spec.items[?(@.name=="b")].size', [2]),
        (".metadata.labels['a.b/c']", ["x"]),
        (r".metadata.labels.a\.b/c", ["x"]),
        (".metadata.labels.owner.deeper", []),
        (".absent.at.all", []),
    ],
)
def test_a_path_leads_to_what_is_there(path, found):
    assert find(OBJECT, path) == found


@pytest.mark.parametrize("wrong", ["spec", ".spec[", ".spec..a"])
def test_a_path_that_cannot_be_read_is_told(wrong):
    with pytest.raises(WrongPath):
        steps_of(wrong)


def test_a_value_is_put_where_nothing_was():
    assert put({"spec": None}, ".spec.workers.count", 3) == {"spec": {"workers": {"count": 3}}}
