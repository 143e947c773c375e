"""Reading and writing: versions, expectations, order, and the past."""

import asyncio
import sqlite3
from contextlib import closing
from itertools import pairwise

import pytest

from tessera.embedded.store import Forgotten, Key, Retention, Stale, Store
from tessera.embedded.store import store as store_module
from tests.unit.embedded.store.storing import THINGS, key, put, thing, values

pytestmark = pytest.mark.asyncio


async def test_a_write_gets_the_next_version_and_says_it_in_the_object(store):
    assert store.version == 1
    record = store.put(key("a"), thing(1), expected=None)
    assert (record.version, store.version) == (2, 2)
    assert record.document() == {
        "metadata": {"labels": {"a": "b"}, "resourceVersion": "2"},
        "spec": {"value": 1},
    }
    assert store.get(key("a")) == record


async def test_what_the_writer_gave_is_left_as_it_was(store):
    document = thing(1)
    store.put(key("a"), document, expected=None)
    assert document == thing(1)


async def test_a_document_is_the_readers_own(store):
    record = put(store, key("a"), 1)
    record.document()["spec"]["value"] = 2
    assert store.get(key("a")).document()["spec"]["value"] == 1


async def test_what_is_there_cannot_be_created(store):
    record = put(store, key("a"), 1)
    with pytest.raises(Stale) as stale:
        store.put(key("a"), thing(2), expected=None)
    assert stale.value.current == record
    assert store.version == record.version


async def test_a_stale_write_changes_nothing(store):
    old = put(store, key("a"), 1)
    new = put(store, key("a"), 2)
    with pytest.raises(Stale) as stale:
        store.put(key("a"), thing(3), expected=old.version)
    assert stale.value.current == new
    with pytest.raises(Stale):
        store.delete(key("a"), expected=old.version)
    assert store.get(key("a")) == new


async def test_what_is_absent_cannot_be_replaced_or_deleted(store):
    for write in (lambda: store.put(key("a"), thing(1), expected=5), lambda: store.delete(key("a"), expected=5)):
        with pytest.raises(Stale, match=r"things.example.com default/a is absent, expected at version 5") as stale:
            write()
        assert stale.value.current is None


async def test_a_deletion_gives_the_last_state_at_its_own_version(store):
    written = put(store, key("a"), 1)
    last = store.delete(key("a"), expected=written.version)
    assert last.version == store.version == written.version + 1
    assert last.document()["metadata"]["resourceVersion"] == str(last.version)
    assert last.document()["spec"] == {"value": 1}
    assert store.get(key("a")) is None
    assert store.list(THINGS) == []


async def test_a_list_is_sorted_by_namespace_and_name(store):
    for namespace, name in (("b", "a"), ("a", "z"), ("a-b", "c"), ("a", "b")):
        put(store, key(name, namespace), 1)
    put(store, Key("others", "a", "b"), 1)
    places = [(record.key.namespace, record.key.name) for record in store.list(THINGS)]
    assert places == [("a", "b"), ("a", "z"), ("a-b", "c"), ("b", "a")]


async def test_a_list_of_a_namespace_has_that_one_alone(store):
    for namespace in ("a", "a-b", "ab", "b"):
        put(store, key("x", namespace), namespace)
    assert [record.key.namespace for record in store.list(THINGS, "a")] == ["a"]
    assert store.list(THINGS, "none") == []


async def test_the_past_can_be_listed_before_and_after_it_is_durable(store):
    put(store, key("kept"), 1)
    put(store, key("changed"), 1)
    put(store, key("gone"), 1)
    await store.settled()
    then = store.version
    put(store, key("changed"), 2)
    store.delete(key("gone"), expected=4)
    put(store, key("new"), 1)
    put(store, key("changed"), 3)
    for _ in range(2):
        assert values(store.list_at(THINGS, "", then)) == {"changed": 1, "gone": 1, "kept": 1}
        assert values(store.list_at(THINGS, "", then + 1)) == {"changed": 2, "gone": 1, "kept": 1}
        assert values(store.list_at(THINGS, "", store.version)) == values(store.list(THINGS))
        await store.settled()


async def test_the_past_of_a_namespace_is_sorted_and_has_nothing_of_another(store):
    for name in ("c", "a", "b"):
        put(store, key(name, "one"), 1)
        put(store, key(name, "two"), 1)
    then = store.version
    for record in store.list(THINGS):
        store.delete(record.key, expected=record.version)
    assert [record.key for record in store.list_at(THINGS, "one", then)] == [key(name, "one") for name in "abc"]


async def test_what_was_forgotten_cannot_be_listed_and_the_rest_can(store):
    for value in range(5):
        put(store, key("a"), value)
    await store.settled()
    store.forget(4)
    assert store.oldest == 4
    with pytest.raises(Forgotten, match="version 3 is forgotten, the oldest that is known is 4"):
        store.list_at(THINGS, "", 3)
    assert [values(store.list_at(THINGS, "", version)) for version in (4, 5, 6)] == [{"a": 2}, {"a": 3}, {"a": 4}]


async def test_what_was_forgotten_leaves_the_file(path):
    store = Store.open(path)
    for value in range(5):
        put(store, key("a"), value)
    store.delete(key("b"), expected=put(store, key("b"), 1).version)
    await store.settled()
    store.forget(store.version)
    store.close()
    with closing(sqlite3.connect(path)) as file:
        assert file.execute("SELECT name FROM log").fetchall() == [("a",)]


async def test_forgetting_goes_no_further_than_what_is_durable_and_never_back(store):
    put(store, key("a"), 1)
    await store.settled()
    put(store, key("a"), 2)
    store.forget(100)
    assert store.oldest == 2
    store.forget(1)
    assert store.oldest == 2


async def test_everything_goes_on_after_a_restart(path):
    store = Store.open(path)
    put(store, key("a"), 1)
    put(store, key("b"), 1)
    then = store.version
    put(store, key("a"), 2)
    store.delete(key("b"), expected=3)
    await store.settled()
    before = (store.version, store.oldest, store.list(THINGS), store.list_at(THINGS, "", then))
    store.close()
    store = Store.open(path)
    assert (store.version, store.oldest, store.list(THINGS), store.list_at(THINGS, "", then)) == before
    assert put(store, key("c"), 1).version == before[0] + 1
    store.close()


async def test_versions_go_on_where_the_last_change_was_a_forgotten_deletion(path):
    store = Store.open(path)
    store.delete(key("a"), expected=put(store, key("a"), 1).version)
    await store.settled()
    store.forget(store.version)
    store.close()
    store = Store.open(path)
    assert (store.version, store.oldest) == (3, 3)
    store.close()


async def test_closing_makes_durable_what_was_just_written(path):
    store = Store.open(path)
    put(store, key("a"), 1)
    store.close()
    store = Store.open(path)
    assert values(store.list(THINGS)) == {"a": 1}
    store.close()


async def test_nothing_is_waited_for_where_nothing_is_written(store):
    await asyncio.wait_for(store.settled(), 1)


async def test_all_that_is_written_in_a_tick_is_committed_at_once(store, monkeypatch):
    committed: list[int] = []
    append = store._database.append
    monkeypatch.setattr(store._database, "append", lambda changes: (committed.append(len(changes)), append(changes)))

    async def write(name):
        put(store, key(name), 1)
        await store.settled()

    await asyncio.gather(*(write(name) for name in "abc"))
    assert committed == [3]


async def test_history_is_bounded_by_itself_and_in_small_steps(path, monkeypatch):
    monkeypatch.setattr(store_module, "TIDY_STRIDE", 4)
    monkeypatch.setattr(store_module, "TIDY_PAUSE_S", 0)
    store = Store.open(path, Retention(versions=10))
    for value in range(50):
        put(store, key("a"), value)
    await store.settled()
    steps = [1, store.oldest]
    async with asyncio.timeout(10):
        while store.oldest < store.version - 10:
            await asyncio.sleep(0)
            steps.append(store.oldest)
    assert {after - before for before, after in pairwise(steps)} <= {0, 1, 2, 3, 4}
    assert values(store.list_at(THINGS, "", store.version - 10)) == {"a": 39}
    store.close()
