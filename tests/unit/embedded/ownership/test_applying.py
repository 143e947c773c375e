"""Server-side apply: who owns what afterwards, what is a conflict, and how it is told."""

import copy

import pytest

from tessera.embedded.ownership import ApplyConflict, apply, note_update
from tessera.embedded.refusals import ApiRefusal
from tests.unit.embedded.ownership.drawn import LATER, NOW, SCHEMA, by, owned_by, thing


def applied(live, wanted, write, *, force=False):
    return apply(live, wanted, write, SCHEMA, force=force)


@pytest.fixture
def of_alice():
    return applied(None, thing(data={"colour": "red"}), by("alice"))


def test_an_apply_of_nothing_known_is_what_was_applied_and_its_owner(of_alice):
    entry = {"manager": "alice", "operation": "Apply", "apiVersion": "v1", "time": NOW, "fieldsType": "FieldsV1"}
    owned = {"fieldsV1": {"f:data": {"f:colour": {}}}}
    assert of_alice == thing({"managedFields": [entry | owned]}, data={"colour": "red"})


def test_the_same_again_changes_nothing_not_even_the_time(of_alice):
    assert applied(of_alice, thing(data={"colour": "red"}), by("alice", LATER)) == of_alice


def test_the_result_shares_nothing_with_what_was_given():
    live = applied(None, thing(data={"colour": "red"}, spec={"tags": ["x"]}), by("alice"))
    wanted = thing(data={"colour": "blue"}, spec={"args": ["a"]})
    before = copy.deepcopy((live, wanted))
    result = applied(live, wanted, by("bob"), force=True)
    for changed in (result["spec"]["args"], result["spec"]["tags"]):
        changed.append("b")
    result["metadata"]["labels"] = {}
    assert (live, wanted) == before


def test_the_time_is_that_of_the_last_apply_that_changed_something(of_alice):
    changed = applied(of_alice, thing(data={"colour": "blue"}), by("alice", LATER))
    assert [entry["time"] for entry in changed["metadata"]["managedFields"]] == [LATER]


def test_a_conflict_names_the_field_and_its_owner(of_alice):
    with pytest.raises(ApplyConflict) as conflict:
        applied(of_alice, thing(data={"colour": "blue"}), by("bob"))
    refusal = conflict.value
    assert refusal.message == 'Apply failed with 1 conflict: conflict with "alice": .data.colour'
    assert refusal.causes == [("FieldManagerConflict", 'conflict with "alice"', ".data.colour")]
    assert (refusal.code, refusal.reason) == (409, "Conflict")
    assert refusal.details["causes"][0]["field"] == ".data.colour"


def test_every_conflict_is_told_by_owner():
    live = applied(None, thing(data={"colour": "red", "shape": "round"}), by("alice"))
    edited = thing(live["metadata"], data=live["data"], spec={"replicas": 1}, status={"phase": "Up"})
    live = note_update(live, edited, by("editor", LATER), SCHEMA)
    live = note_update(live, live | {"data": live["data"] | {"size": "s"}}, by("kubelet", subresource="status"), SCHEMA)
    wanted = thing(data={"colour": "blue", "shape": "flat", "size": "m"}, spec={"replicas": 2})
    with pytest.raises(ApplyConflict) as conflict:
        applied(live, wanted, by("bob"))
    assert conflict.value.message == (
        'Apply failed with 4 conflicts: conflicts with "alice":\n- .data.colour\n- .data.shape\n'
        'conflicts with "editor" using v1:\n- .spec.replicas\n'
        'conflicts with "kubelet" with subresource "status" using v1:\n- .data.size'
    )


def test_force_takes_a_field_over_and_leaves_its_owner_the_rest():
    live = applied(None, thing(data={"colour": "red", "shape": "round"}), by("alice"))
    taken = applied(live, thing(data={"colour": "blue"}), by("bob", LATER), force=True)
    assert taken["data"] == {"colour": "blue", "shape": "round"}
    assert owned_by(taken, "alice") == {"f:data": {"f:shape": {}}}
    assert owned_by(taken, "bob") == {"f:data": {"f:colour": {}}}
    assert [entry["time"] for entry in taken["metadata"]["managedFields"]] == [NOW, LATER]


def test_an_owner_of_nothing_vanishes(of_alice):
    taken = applied(of_alice, thing(data={"colour": "blue"}), by("bob"), force=True)
    assert [entry["manager"] for entry in taken["metadata"]["managedFields"]] == ["bob"]


def test_equal_values_are_shared(of_alice):
    shared = applied(of_alice, thing(data={"colour": "red"}), by("bob", LATER))
    assert owned_by(shared, "alice") == owned_by(shared, "bob") == {"f:data": {"f:colour": {}}}


def test_a_field_goes_with_its_last_owner():
    live = applied(None, thing(data={"colour": "red", "shape": "round"}), by("alice"))
    live = applied(live, thing(data={"colour": "red"}), by("bob"))
    left = applied(live, thing(data={}), by("alice"))
    assert left["data"] == {"colour": "red"}
    assert owned_by(left, "bob") == {"f:data": {"f:colour": {}}}
    gone = applied(left, thing(), by("bob"))
    assert gone["data"] == {}
    assert owned_by(gone, "alice") == {"f:data": {}}


def test_an_object_of_which_nobody_applies_anything_keeps_its_identity():
    live = applied(None, thing({"labels": {"a": "1"}}), by("alice"))
    live["metadata"] |= {"uid": "1", "resourceVersion": "5"}
    left = applied(live, {"apiVersion": "v1", "kind": "Thing"}, by("alice"))
    assert left == thing({"uid": "1", "resourceVersion": "5"})


def test_elements_of_lists_are_owned_one_by_one():
    def with_env(name):
        return thing(spec={"containers": [{"name": "m", "env": [{"name": name, "value": "1"}]}], "tags": [name]})

    live = applied(None, with_env("A"), by("alice"))
    both = applied(live, with_env("B"), by("bob"))
    assert [entry["name"] for entry in both["spec"]["containers"][0]["env"]] == ["A", "B"]
    assert both["spec"]["tags"] == ["A", "B"]
    left = applied(both, thing(spec={"containers": [{"name": "m"}]}), by("alice"))
    assert left["spec"] == with_env("B")["spec"]


def test_a_default_of_a_key_is_part_of_it():
    def with_port(**port):
        return thing(spec={"containers": [{"name": "m", "ports": [{"port": 80} | port]}]})

    live = applied(None, with_port(), by("alice"))
    live["spec"]["containers"][0]["ports"][0]["protocol"] = "TCP"
    merged = applied(live, with_port(host="h"), by("alice"))
    assert merged["spec"]["containers"][0]["ports"] == [{"port": 80, "protocol": "TCP", "host": "h"}]


def test_an_update_takes_a_field_from_its_applier_who_then_conflicts(of_alice):
    edited = note_update(of_alice, of_alice | {"data": {"colour": "blue"}}, by("editor"), SCHEMA)
    assert owned_by(edited, "alice") is None
    with pytest.raises(ApplyConflict, match=r'conflict with "editor" using v1: \.data\.colour'):
        applied(edited, thing(data={"colour": "red"}), by("alice"))


def test_what_was_there_before_the_first_apply_is_owned_by_before_first_apply():
    live = thing({"uid": "1"}, data={"shape": "round", "colour": "red"}, status={"phase": "Up"})
    with pytest.raises(ApplyConflict, match=r'conflict with "before-first-apply" using v1: \.data\.shape'):
        applied(live, thing(data={"shape": "flat"}), by("alice"))
    merged = applied(live, thing(data={"shape": "flat"}), by("alice"), force=True)
    assert owned_by(merged, "before-first-apply", "Update") == {"f:data": {".": {}, "f:colour": {}}}


def test_an_applier_is_one_whatever_version_it_uses(of_alice):
    newer = by("alice")._replace(api_version="v2")
    moved = applied(of_alice, thing(data={"colour": "blue"}) | {"apiVersion": "v2"}, newer)
    assert [entry["apiVersion"] for entry in moved["metadata"]["managedFields"]] == ["v2"]


def test_status_is_owned_apart_and_a_write_reaches_only_its_own():
    live = applied(None, thing(spec={"replicas": 1}, status={"phase": "Odd"}), by("client"))
    assert "status" not in live
    wanted = thing(spec={"replicas": 2}, status={"phase": "Up"})
    both = applied(live, wanted, by("client", subresource="status"))
    assert (both["spec"], both["status"]) == ({"replicas": 1}, {"phase": "Up"})
    entries = [(entry.get("subresource"), entry["fieldsV1"]) for entry in both["metadata"]["managedFields"]]
    assert entries == [(None, {"f:spec": {"f:replicas": {}}}), ("status", {"f:status": {"f:phase": {}}})]


def test_status_of_a_kind_without_the_subresource_is_a_field_like_others():
    write = by("client")._replace(status_apart=False)
    live = applied(None, thing(status={"phase": "Up"}), write)
    assert owned_by(live, "client") == {"f:status": {"f:phase": {}}}


def test_what_says_which_object_it_is_is_nobodys():
    wanted = thing({"namespace": "n", "uid": "1", "resourceVersion": "1", "labels": {"a": "1"}})
    assert owned_by(applied(None, wanted, by("alice")), "alice") == {"f:metadata": {"f:labels": {"f:a": {}}}}


@pytest.mark.parametrize(
    ("wanted", "message"),
    [
        (thing({"managedFields": []}), "metadata.managedFields must be nil"),
        ({"kind": "Thing", "metadata": {}}, "invalid object type: /, Kind=Thing"),
        ({"apiVersion": "v1", "metadata": {}}, "invalid object type: /v1, Kind="),
        ({"apiVersion": "apps/v1", "kind": "Thing"}, "invalid object type: apps/v1, Kind=Thing"),
    ],
)
def test_an_apply_that_does_not_say_what_it_is_is_a_bad_request(wanted, message):
    with pytest.raises(ApiRefusal) as refusal:
        applied(None, wanted, by("alice"))
    assert (refusal.value.code, refusal.value.message) == (400, message)


def test_two_elements_of_one_key_are_refused():
    with pytest.raises(ApiRefusal) as refusal:
        applied(None, thing(spec={"containers": [{"name": "a"}, {"name": "a"}]}), by("alice"))
    assert (refusal.value.code, refusal.value.reason) == (422, "Invalid")
    cause = {
        "reason": "FieldValueDuplicate",
        "message": 'duplicate entries for key [name="a"]',
        "field": "spec.containers",
    }
    assert refusal.value.details == {"causes": [cause]}
