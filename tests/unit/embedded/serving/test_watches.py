"""What a change means to those who see only a part."""

import asyncio

import pytest
import pytest_asyncio

from tessera.embedded.kinds import Kind
from tessera.embedded.serving.envelopes import decode, shown
from tessera.embedded.serving.forms import Form
from tessera.embedded.serving.options import read_options
from tessera.embedded.serving.selectors import read_selection
from tessera.embedded.serving.watches import Wanted, Watches, meaning
from tessera.embedded.store import Change, Key, Record, Store

THINGS = Kind(group="a.example", version="v1", kind="Thing", plural="things")
RED = read_selection(THINGS, "colour=red", "")


def at(version, **labels):
    document = {"metadata": {"name": "a", "labels": labels}, "version": version}
    return Record.of(Key("things.a.example", "default", "a"), version, document)


@pytest.mark.parametrize(
    ("before", "after", "type"),
    [
        (None, at(2, colour="red"), "ADDED"),
        (None, at(2, colour="blue"), None),
        (at(1, colour="blue"), at(2, colour="red"), "ADDED"),
        (at(1, colour="red"), at(2, colour="red"), "MODIFIED"),
        (at(1, colour="red"), at(2), "DELETED"),
        (at(1, colour="blue"), at(2), None),
        (at(1, colour="red"), None, "DELETED"),
        (at(1, colour="blue"), None, None),
    ],
)
def test_a_change_is_what_the_selection_sees_of_it(before, after, type):
    event = meaning(Change(2, before, after), RED)
    assert (event and event.type) == type


def test_what_leaves_a_selection_is_shown_as_it_was_at_the_version_at_which_it_left():
    event = meaning(Change(2, at(1, colour="red"), at(2, colour="blue")), RED)
    assert event
    document = event.record.document()
    assert document["metadata"]["labels"] == {"colour": "red"}
    assert document["metadata"]["resourceVersion"] == "2"


@pytest_asyncio.fixture
async def store(tmp_path):
    store = Store.open(tmp_path / "state.db")
    yield store
    store.close()


async def watch(store, query, *, lines, meanwhile=None):
    """So many lines of a watch, of which `meanwhile` happens after the first."""
    seen, enough = [], asyncio.Event()

    async def write(part):
        seen.extend(decode(line) for line in part.splitlines())
        if len(seen) >= lines:
            enough.set()

    wanted = Wanted(THINGS, "things.a.example", "", Form.OBJECT, None, lambda record: shown(THINGS, record))
    stream = await Watches(store).open(wanted, read_options(query.encode()))
    running = asyncio.ensure_future(stream.run(write))
    if meanwhile:
        meanwhile()
    await asyncio.wait_for(enough.wait(), 10)
    running.cancel()
    return seen


def put(store, name):
    store.put(Key("things.a.example", "default", name), {"metadata": {"name": name}}, expected=None)


@pytest.mark.asyncio
async def test_a_watch_without_a_version_begins_with_what_is_there(store):
    put(store, "a")
    seen = await watch(store, "", lines=2, meanwhile=lambda: put(store, "b"))
    assert [(event["type"], event["object"]["metadata"]["name"]) for event in seen] == [("ADDED", "a"), ("ADDED", "b")]
    assert seen[0]["object"]["kind"] == "Thing"


@pytest.mark.asyncio
async def test_the_initial_events_end_with_a_mark(store):
    put(store, "a")
    query = "sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true"
    _, mark = await watch(store, query, lines=2)
    assert mark["type"] == "BOOKMARK"
    assert mark["object"]["metadata"]["annotations"] == {"k8s.io/initial-events-end": "true"}
    assert mark["object"]["metadata"]["resourceVersion"] == str(store.version)


@pytest.mark.asyncio
async def test_a_watch_from_a_forgotten_version_is_told_so(store):
    put(store, "a")
    put(store, "b")
    await store.settled()
    store.forget(store.version)
    (event,) = await watch(store, "resourceVersion=1", lines=1)
    assert (event["type"], event["object"]["code"]) == ("ERROR", 410)


@pytest.mark.asyncio
async def test_two_watchers_of_one_form_are_given_the_same_bytes(store):
    made = []

    def render(record):
        made.append(record)
        return shown(THINGS, record)

    wanted = Wanted(THINGS, "things.a.example", "", Form.OBJECT, None, render)
    watches, written = Watches(store), asyncio.Queue()
    streams = [await watches.open(wanted, read_options(b"resourceVersion=1")) for _ in range(2)]
    running = [asyncio.ensure_future(stream.run(written.put)) for stream in streams]
    put(store, "a")
    lines = [await asyncio.wait_for(written.get(), 10) for _ in running]
    assert lines[0] == lines[1]
    assert len(made) == 1
    for task in running:
        task.cancel()
