"""What holds for every apply and every update, whatever is applied by whom."""

import copy

from hypothesis import given
from hypothesis import strategies as st

from tessera.embedded.ownership import apply, note_update
from tessera.embedded.ownership.fields import intersection, paths, read_fields
from tessera.embedded.ownership.shapes import shape_of
from tessera.embedded.ownership.surveying import compare, everything, stated
from tests.unit.embedded.ownership.drawn import LATER, SCHEMA, by, owned_by, thing
from tests.unit.embedded.ownership.generated import things

SHAPE = shape_of(SCHEMA)
managers = st.sampled_from(["alice", "bob"])
writes = st.lists(st.tuples(st.sampled_from(["apply", "update"]), managers, things), min_size=1, max_size=4)


def applied(live, wanted, manager):
    return apply(live, wanted, by(manager, LATER), SCHEMA, force=True)


def written(history):
    """An object after these writes, each by its manager."""
    _, manager, wanted = history[0]
    live = applied(None, wanted, manager)
    for verb, manager, wanted in history[1:]:
        live = applied(live, wanted, manager) if verb == "apply" else note_update(live, wanted, by(manager), SCHEMA)
    return live


def fields_of(document):
    return set(paths(everything(document, SHAPE)))


def owners_of(document):
    entries = document["metadata"].get("managedFields", ())
    return {(entry["manager"], entry["operation"]): set(paths(entry["fieldsV1"])) for entry in entries}


@given(writes, things, managers)
def test_applying_twice_changes_nothing_more(history, wanted, manager):
    once = applied(written(history), wanted, manager)
    assert applied(once, wanted, manager) == once
    assert apply(once, wanted, by(manager, "2030-01-01T00:00:00Z"), SCHEMA, force=False) == once


@given(writes, things, managers)
def test_what_was_applied_is_there_and_owned(history, wanted, manager):
    result = applied(written(history), wanted, manager)
    changes = compare(result, wanted, SHAPE)
    assert not intersection(changes.written, stated(wanted, SHAPE)), "a field that was applied has another value"
    nobodys = {".apiVersion", ".kind", ".metadata.name", ".metadata"}
    assert set(paths(owned_by(result, manager) or {})) == set(paths(stated(wanted, SHAPE))) - nobodys


@given(writes, managers)
def test_whoever_applies_nothing_any_more_leaves_nothing_that_only_they_owned(history, manager):
    before = written(history)
    owners = owners_of(before)
    mine = owners.pop((manager, "Apply"), set())
    alone = mine - set().union(*owners.values())
    after = applied(before, thing(), manager)
    assert owned_by(after, manager) is None
    assert not {path for path in alone & fields_of(after) if not _leads_to_a_field_of(path, owners)}


def _leads_to_a_field_of(path, owners):
    return any(other.startswith((path + ".", path + "[")) for owned in owners.values() for other in owned)


@given(writes, things, managers)
def test_an_update_leaves_every_unchanged_field_to_its_owners(history, wanted, manager):
    before = written(history)
    after = note_update(before, wanted, by(manager), SCHEMA)
    if "managedFields" not in before["metadata"]:
        return
    changes = compare(_plain(before), _plain(wanted), SHAPE)
    changed = set(paths(changes.written)) | set(paths(changes.removed))
    for owner, fields in owners_of(before).items():
        assert fields - changed <= owners_of(after).get(owner, set())


@given(writes)
def test_owners_own_what_is_there_and_are_spelled_as_they_are_read(history):
    document = written(history)
    for entry in document["metadata"].get("managedFields", ()):
        assert read_fields(entry["fieldsV1"]) == entry["fieldsV1"]
        assert set(paths(entry["fieldsV1"])) <= fields_of(document)
        assert entry["fieldsV1"]


@given(writes, things)
def test_what_was_given_is_never_changed(history, wanted):
    before = written(history)
    kept = copy.deepcopy((before, wanted))
    applied(before, wanted, "alice")
    note_update(before, wanted, by("bob"), SCHEMA)
    assert (before, wanted) == kept


def _plain(document):
    return document | {
        "metadata": {key: value for key, value in document["metadata"].items() if key != "managedFields"}
    }
