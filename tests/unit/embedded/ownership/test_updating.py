"""What a write other than an apply leaves in managedFields."""

import copy

import pytest

from tessera.embedded.ownership import apply, note_update
from tessera.embedded.ownership.entries import MOST_UPDATERS, OLD_UPDATERS
from tests.unit.embedded.ownership.drawn import LATER, NOW, SCHEMA, by, owned_by, thing


def noted(before, after, write):
    return note_update(before, after, write, SCHEMA)


@pytest.fixture
def created():
    metadata = {"uid": "1", "creationTimestamp": NOW, "generation": 1, "labels": {"a": "1"}}
    return noted(None, thing(metadata, data={"colour": "red"}, status={"phase": "Up"}), by("maker"))


def test_whoever_creates_owns_all_but_identity_and_status(created):
    assert created["metadata"]["managedFields"] == [
        {
            "manager": "maker",
            "operation": "Update",
            "apiVersion": "v1",
            "time": NOW,
            "fieldsType": "FieldsV1",
            "fieldsV1": {
                "f:metadata": {"f:labels": {".": {}, "f:a": {}}},
                "f:data": {".": {}, "f:colour": {}},
            },
        }
    ]


def test_the_documents_given_stay_as_they_are(created):
    before, after = copy.deepcopy(created), created | {"data": {"colour": "blue"}}
    noted(created, after, by("editor"))
    assert created == before
    assert after == before | {"data": {"colour": "blue"}}


def test_a_write_that_changes_nothing_leaves_the_same_entries(created):
    same = copy.deepcopy(created)
    same["metadata"] |= {"resourceVersion": "7", "generation": 2}
    noted_again = noted(created, same, by("editor", LATER))
    assert noted_again["metadata"]["managedFields"] == created["metadata"]["managedFields"]


def test_whoever_changes_a_field_owns_it_and_its_owner_no_longer_does(created):
    edited = noted(created, created | {"data": {"colour": "blue", "size": "s"}}, by("editor", LATER))
    assert owned_by(edited, "editor", "Update") == {"f:data": {"f:colour": {}, "f:size": {}}}
    assert owned_by(edited, "maker", "Update") == {"f:metadata": {"f:labels": {".": {}, "f:a": {}}}, "f:data": {}}
    assert [entry["time"] for entry in edited["metadata"]["managedFields"]] == [NOW, LATER]


def test_a_field_that_is_removed_has_no_owner_and_the_remover_is_none(created):
    removed = noted(created, thing(created["metadata"], status={"phase": "Up"}), by("editor", LATER))
    assert owned_by(removed, "maker", "Update") == {"f:metadata": {"f:labels": {".": {}, "f:a": {}}}}
    assert owned_by(removed, "editor", "Update") is None


def test_a_writer_gathers_what_it_writes(created):
    more = noted(created, created | {"spec": {"replicas": 1}}, by("maker", LATER))
    assert set(owned_by(more, "maker", "Update") or ()) == {"f:metadata", "f:data", "f:spec"}
    assert [entry["time"] for entry in more["metadata"]["managedFields"]] == [LATER]


def test_status_is_noted_for_its_own_subresource_and_no_other(created):
    changed = created | {"status": {"phase": "Down"}, "spec": {"replicas": 1}}
    edited = noted(created, changed, by("kubelet", subresource="status"))
    assert owned_by(edited, "kubelet", "Update") == {"f:status": {"f:phase": {}}}
    assert edited["metadata"]["managedFields"][0] | {"fieldsV1": {}} == {
        "manager": "kubelet",
        "operation": "Update",
        "apiVersion": "v1",
        "time": NOW,
        "fieldsType": "FieldsV1",
        "fieldsV1": {},
        "subresource": "status",
    }
    main = noted(created, changed, by("editor"))
    assert owned_by(main, "editor", "Update") == {"f:spec": {".": {}, "f:replicas": {}}}


def test_appliers_come_first_then_who_wrote_longest_ago(created):
    live = noted(created, created | {"spec": {"replicas": 1}}, by("editor", LATER))
    live = apply(live, thing(data={"size": "s"}), by("zoe", LATER), SCHEMA, force=False)
    live = apply(live, thing(data={"form": "x"}), by("bob", LATER), SCHEMA, force=False)
    assert [entry["manager"] for entry in live["metadata"]["managedFields"]] == ["bob", "zoe", "maker", "editor"]


def test_a_client_that_does_not_know_of_owners_drops_none(created):
    sent = thing({"uid": "1"}, data={"colour": "red"}, status={"phase": "Up"})
    assert owned_by(noted(created, sent, by("old-client")), "maker", "Update") == {"f:data": {".": {}, "f:colour": {}}}


@pytest.mark.parametrize("nothing", [[], [{}]])
def test_a_client_can_drop_all_owners_and_none_come_until_somebody_applies(created, nothing):
    dropped = noted(created, thing(created["metadata"] | {"managedFields": nothing}, data={}), by("editor"))
    assert "managedFields" not in dropped["metadata"]
    assert "managedFields" not in noted(dropped, dropped | {"data": {"a": "b"}}, by("editor"))["metadata"]


def test_a_client_can_give_fields_to_another(created):
    entry = created["metadata"]["managedFields"][0] | {"manager": "heir", "operation": "Apply"}
    moved = noted(created, created | {"metadata": created["metadata"] | {"managedFields": [entry]}}, by("editor"))
    assert owned_by(moved, "heir") == owned_by(created, "maker", "Update")
    assert owned_by(moved, "maker", "Update") is None


@pytest.mark.parametrize(
    "wrong",
    [
        [{"manager": "x"}],
        [{"manager": "x", "operation": "Apply", "apiVersion": "v1", "fieldsType": "FieldsV2", "fieldsV1": {}}],
        [{"manager": "x", "operation": "Apply", "apiVersion": "v1", "fieldsType": "FieldsV1", "fieldsV1": {"a": {}}}],
        ["x"],
        7,
    ],
)
def test_owners_that_cannot_be_read_are_as_if_not_sent(created, wrong):
    sent = created | {"metadata": created["metadata"] | {"managedFields": wrong}}
    assert noted(created, sent, by("editor")) == created


def test_nobody_sets_owners_through_a_subresource(created):
    sent = created | {"metadata": created["metadata"] | {"managedFields": []}}
    assert noted(created, sent, by("kubelet", subresource="status")) == created


def test_of_many_writers_the_oldest_become_one(created):
    live = created
    for number in range(20):
        data = live["data"] | {f"field-{number:02}": "x"}
        live = noted(live, live | {"data": data}, by(f"writer-{number:02}", f"2026-01-02T00:00:{number:02}Z"))
    managers = [entry["manager"] for entry in live["metadata"]["managedFields"]]
    assert managers == [OLD_UPDATERS, *(f"writer-{number}" for number in range(11, 20))]
    assert len(managers) == MOST_UPDATERS
    old = owned_by(live, OLD_UPDATERS, "Update") or {}
    assert set(old["f:data"]) == {".", "f:colour", *(f"f:field-{number:02}" for number in range(11))}
