"""Following: each durable change once and in order, from any version that is known."""

import asyncio

import pytest

from tessera.embedded.store import Forgotten, Key, Store
from tessera.embedded.store import feed as feed_module
from tests.unit.embedded.store.storing import THINGS, key, put, take

pytestmark = pytest.mark.asyncio


def told(changes):
    return [(change.type, change.key.name, change.version) for change in changes]


async def test_changes_come_in_order_with_what_was_before_and_after(store):
    following = store.follow(THINGS, since=store.version)
    first = put(store, key("a"), 1)
    second = put(store, key("a"), 2)
    store.delete(key("a"), expected=second.version)
    added, modified, deleted = await take(following, 3)
    assert told([added, modified, deleted]) == [("ADDED", "a", 2), ("MODIFIED", "a", 3), ("DELETED", "a", 4)]
    assert (added.before, added.after) == (None, first)
    assert (modified.before, modified.after) == (first, second)
    assert (deleted.before, deleted.after) == (second.stamped(4), None)


async def test_the_state_that_was_replaced_can_be_shown_at_the_version_of_the_change(store):
    following = store.follow(THINGS, since=store.version)
    first = put(store, key("a"), 1)
    second = put(store, key("a"), 2)
    _, modified = await take(following, 2)
    assert modified.last == first.stamped(second.version)


async def test_a_stamp_changes_the_version_alone(store):
    record = put(store, key("a"), 1)
    stamped = record.stamped(7)
    assert (stamped.key, stamped.version) == (record.key, 7)
    metadata = record.document()["metadata"] | {"resourceVersion": "7"}
    assert stamped.document() == record.document() | {"metadata": metadata}


async def test_every_version_can_be_followed_from(store):
    for value in range(4):
        put(store, key("a"), value)
    await store.settled()
    for since in range(1, store.version):
        changes = await take(store.follow(THINGS, since=since), store.version - since)
        assert [change.version for change in changes] == list(range(since + 1, store.version + 1))


async def test_history_reads_as_it_happened(store):
    live = store.follow(THINGS, since=store.version)
    for value in range(3):
        put(store, key("a"), value)
    store.delete(key("a"), expected=store.version)
    put(store, key("a"), 4)
    seen_live = await take(live, 5)
    seen_later = list(store._database.changes(THINGS, 1, store.version))
    assert seen_later == seen_live
    assert [change.before for change in seen_later] == [change.before for change in seen_live]


async def test_only_one_resource_and_one_namespace_is_followed(store):
    since = store.version
    here, everywhere = store.follow(THINGS, "here", since=since), store.follow(THINGS, since=since)
    put(store, key("a", "there"), 1)
    put(store, Key("others", "here", "a"), 1)
    put(store, key("a", "here"), 1)
    assert [change.key for change in await take(here, 1)] == [key("a", "here")]
    assert [change.key for change in await take(everywhere, 2)] == [key("a", "there"), key("a", "here")]
    assert [change.key for change in await take(store.follow(THINGS, "here", since=since), 1)] == [key("a", "here")]


async def test_who_listed_what_was_not_yet_durable_is_not_told_of_it_again(store):
    put(store, key("a"), 1)
    following = store.follow(THINGS, since=store.version)
    await store.settled()
    put(store, key("b"), 1)
    assert told(await take(following, 1)) == [("ADDED", "b", 3)]


async def test_a_forgotten_version_cannot_be_followed_from(store):
    for value in range(4):
        put(store, key("a"), value)
    await store.settled()
    store.forget(4)
    with pytest.raises(Forgotten):
        store.follow(THINGS, since=3)
    assert told(await take(store.follow(THINGS, since=4), 1)) == [("MODIFIED", "a", 5)]


async def test_who_is_slow_misses_nothing_as_long_as_history_goes_back_that_far(store, monkeypatch):
    monkeypatch.setattr(feed_module, "WINDOW", 3)
    monkeypatch.setattr(feed_module, "STRIDE", 2)
    slow, quick = store.follow(THINGS, since=store.version), store.follow(THINGS, since=store.version)
    for value in range(20):
        put(store, key("a"), value)
        if value % 2:
            await take(quick, 2)
    assert [change.version for change in await take(slow, 20)] == list(range(2, 22))


async def test_who_is_slower_than_history_is_cut_off(store, monkeypatch):
    monkeypatch.setattr(feed_module, "WINDOW", 3)
    slow = store.follow(THINGS, since=store.version)
    for value in range(20):
        put(store, key("a"), value)
    await store.settled()
    store.forget(store.version)
    with pytest.raises(Forgotten):
        await take(slow, 1)


async def test_a_wait_that_is_cancelled_loses_nothing(store):
    following = store.follow(THINGS, since=store.version)
    with pytest.raises(TimeoutError):
        await asyncio.wait_for(anext(following), 0.01)
    put(store, key("a"), 1)
    assert told(await take(following, 1)) == [("ADDED", "a", 2)]


async def test_a_batch_is_all_that_is_at_hand(store):
    following = store.follow(THINGS, since=store.version)
    for name in "abc":
        put(store, key(name), 1)
    assert [change.key.name for change in await following.batch()] == ["a", "b", "c"]
    put(store, key("d"), 1)
    assert [change.key.name for change in await following.batch()] == ["d"]


async def test_a_quiet_follower_knows_how_far_it_has_come(store):
    following = store.follow(THINGS, "here", since=store.version)
    put(store, key("a", "there"), 1)
    await store.settled()
    assert following.reached == 1
    with pytest.raises(TimeoutError):
        await asyncio.wait_for(anext(following), 0.01)
    put(store, Key("others", "here", "a"), 1)
    await store.settled()
    assert following.reached == store.version


async def test_what_is_still_to_be_handed_out_was_not_reached(store):
    following = store.follow(THINGS, since=store.version)
    put(store, key("a"), 1)
    put(store, key("b"), 1)
    await store.settled()
    await take(following, 1)
    assert following.reached == 2
    await take(following, 1)
    assert following.reached == 3


async def test_followers_end_when_the_store_is_closed(path):
    store = Store.open(path)
    following = store.follow(THINGS, since=store.version)
    waiting = asyncio.ensure_future(anext(following, "the end"))
    await asyncio.sleep(0)
    store.close()
    assert await waiting == "the end"
    assert await anext(following, "the end") == "the end"
    assert await following.batch() == ()


async def test_what_followers_share_of_a_change_is_made_once(store):
    since = store.version
    followers = [store.follow(THINGS, since=since) for _ in range(3)]
    put(store, key("a"), 1)
    made: list[bytes] = []

    def line():
        made.append(b"line")
        return made[-1]

    lines = [change.once("line", line) for follower in followers for change in await take(follower, 1)]
    assert (lines, len(made)) == ([b"line"] * 3, 1)


async def test_a_follower_goes_on_from_before_a_restart(path):
    store = Store.open(path)
    put(store, key("a"), 1)
    since = store.version
    put(store, key("a"), 2)
    await store.settled()
    store.close()
    store = Store.open(path)
    following = store.follow(THINGS, since=since)
    put(store, key("a"), 3)
    changes = await take(following, 2)
    assert told(changes) == [("MODIFIED", "a", 3), ("MODIFIED", "a", 4)]
    assert changes[1].after == store.get(key("a"))
    store.close()
