"""What a cache tells when it learns more: exactly the difference, each key's life without gaps."""

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tessera.kube.caching import Cache, Change, Listing
from tessera.kube.objects import Identity, ObjectKey, ObjectMeta, identify
from tessera.kube.watching import EventType, ObjectEvent


class Thing(msgspec.Struct, frozen=True):
    metadata: ObjectMeta
    node: str = ""


def a_thing(name: str, version: int, uid: str = "", node: str = "") -> Thing:
    meta = ObjectMeta(name=name, namespace="n", uid=uid or name, resource_version=str(version))
    return Thing(meta, node)


def a_listing(cache: Cache[Thing], things: list[Thing]) -> Listing[Thing]:
    listing = Listing(cache)
    for thing in things:
        listing.put(identify(thing), thing)
    return listing


def added(thing: Thing) -> ObjectEvent[Thing]:
    return ObjectEvent(EventType.ADDED, thing)


def take_in(cache: Cache[Thing], happening: ObjectEvent[Thing] | list[Thing]) -> list[Change[Thing]]:
    if isinstance(happening, list):
        return cache.replace(a_listing(cache, happening))
    return cache.learn(happening)


def key_of(name: str) -> ObjectKey:
    return ObjectKey("n", name)


worlds = st.dictionaries(
    st.sampled_from("abcde"), st.tuples(st.integers(1, 4), st.sampled_from(["one", "two"])), max_size=5
).map(lambda drawn: [a_thing(name, version, uid) for name, (version, uid) in drawn.items()])
events = st.builds(
    ObjectEvent,
    st.sampled_from(list(EventType)),
    st.builds(a_thing, st.sampled_from("abc"), st.integers(1, 5), st.sampled_from(["one", "two"])),
)


@given(worlds, worlds)
def test_a_relist_tells_exactly_the_difference(before: list[Thing], after: list[Thing]) -> None:
    cache: Cache[Thing] = Cache()
    cache.replace(a_listing(cache, before))

    changes = cache.replace(a_listing(cache, after))

    assert sorted(cache, key=str) == sorted(after, key=str)
    old, new = ({thing.metadata.name: thing for thing in things} for things in (before, after))
    for name in "abcde":
        told = [(change.before, change.after) for change in changes if change.key == key_of(name)]
        assert told == expected_changes(old.get(name), new.get(name))


def expected_changes(old: Thing | None, new: Thing | None) -> list[tuple[Thing | None, Thing | None]]:
    if old is None or new is None:
        return [] if old is new else [(old, new)]
    if old.metadata.uid != new.metadata.uid:
        return [(old, None), (None, new)]
    return [] if old.metadata.resource_version == new.metadata.resource_version else [(old, new)]


@given(st.lists(st.one_of(events, worlds)))
def test_each_change_begins_where_the_last_one_of_its_key_ended(
    happenings: list[ObjectEvent[Thing] | list[Thing]],
) -> None:
    cache: Cache[Thing] = Cache()
    seen: dict[ObjectKey, Thing | None] = {}

    for happening in happenings:
        for change in take_in(cache, happening):
            assert change.before is seen.get(change.key)
            assert change.before is not change.after
            seen[change.key] = change.after

    assert {key: thing for key, thing in seen.items() if thing} == {
        key_of(thing.metadata.name or ""): thing for thing in cache
    }


@given(st.lists(st.one_of(events, worlds)))
def test_an_index_finds_what_a_search_would(happenings: list[ObjectEvent[Thing] | list[Thing]]) -> None:
    cache: Cache[Thing] = Cache({"version": lambda thing: [thing.metadata.resource_version or ""]})

    for happening in happenings:
        take_in(cache, happening)

    for version in "12345":
        expected = [thing for thing in cache if thing.metadata.resource_version == version]
        assert sorted(cache.find("version", version), key=str) == sorted(expected, key=str)


def test_the_same_state_told_twice_is_no_change() -> None:
    cache: Cache[Thing] = Cache()
    cache.learn(added(a_thing("a", 1)))

    assert cache.learn(added(a_thing("a", 1))) == []


def test_what_was_made_again_under_its_name_is_a_deletion_and_an_addition() -> None:
    cache: Cache[Thing] = Cache()
    first, second = a_thing("a", 1, "one"), a_thing("a", 5, "two")
    cache.learn(added(first))

    changes = cache.learn(ObjectEvent(EventType.MODIFIED, second))

    assert changes == [Change(key_of("a"), first, None), Change(key_of("a"), None, second)]


def test_what_is_gone_is_told_before_what_is_new() -> None:
    cache: Cache[Thing] = Cache()
    cache.learn(added(a_thing("old", 1)))

    changes = cache.replace(a_listing(cache, [a_thing("new", 2)]))

    assert [change.key.name for change in changes] == ["old", "new"]


def test_a_relist_does_not_hold_a_known_state_twice() -> None:
    cache: Cache[Thing] = Cache()
    known = a_thing("a", 1)
    cache.learn(added(known))

    cache.replace(a_listing(cache, [a_thing("a", 1)]))

    assert cache.get(key_of("a")) is known


@pytest.mark.parametrize(("uid", "is_kept"), [("a", True), ("another", False)])
def test_what_does_not_decode_in_a_relist_stays_as_it_was_known(uid: str, is_kept: bool) -> None:
    cache: Cache[Thing] = Cache()
    cache.learn(added(a_thing("a", 1)))
    listing = Listing(cache)

    listing.keep(Identity(key_of("a"), uid, "2"))
    cache.replace(listing)

    assert (cache.get(key_of("a")) is not None) is is_kept
