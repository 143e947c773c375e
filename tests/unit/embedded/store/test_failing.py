"""A disk that does not take what is written: nothing of it stays, those who waited are told, the store goes on."""

import asyncio
import subprocess
import sys
from pathlib import Path

import pytest
from structlog.testing import capture_logs

from tessera.embedded.store import Store
from tessera.errors import StoreFailed
from tests.unit.embedded.store.storing import THINGS, key, no_room_on_the_disk, put, take, values

pytestmark = pytest.mark.asyncio


async def fail(store: Store) -> None:
    with no_room_on_the_disk(), pytest.raises(StoreFailed):
        await store.settled()


async def test_what_could_not_be_made_durable_is_taken_out_again(store):
    put(store, key("changed"), 1)
    put(store, key("deleted"), 1)
    await store.settled()
    before, version = store.list(THINGS), store.version
    put(store, key("changed"), 2)
    put(store, key("new"), 1)
    store.delete(key("deleted"), expected=3)
    put(store, key("deleted"), 2)
    put(store, key("changed"), 3)
    await fail(store)
    assert store.list(THINGS) == before
    assert store.list_at(THINGS, "", version) == before


async def test_all_who_waited_are_told_in_one_sentence(store, path):
    async def write(name):
        put(store, key(name), 1)
        await store.settled()

    with no_room_on_the_disk():
        outcomes = await asyncio.gather(*(write(name) for name in "abc"), return_exceptions=True)
    assert [str(outcome) for outcome in outcomes] == [
        f"{path}: cannot be read or written: disk I/O error; check its disk and its permissions"
    ] * 3


async def test_versions_of_failed_writes_do_not_stand_and_are_not_given_again(store):
    before = store.version
    failed = put(store, key("a"), 1)
    await fail(store)
    assert store.version == before
    assert put(store, key("a"), 2).version > failed.version


async def test_followers_never_hear_of_what_failed(store):
    following = store.follow(THINGS, since=store.version)
    put(store, key("failed"), 1)
    await fail(store)
    put(store, key("a"), 1)
    changes = await take(following, 1)
    assert [change.key.name for change in changes] == ["a"]


async def test_the_store_goes_on_after_a_failure_and_after_a_restart(path):
    store = Store.open(path)
    put(store, key("a"), 1)
    await store.settled()
    put(store, key("a"), 2)
    await fail(store)
    put(store, key("b"), 1)
    await store.settled()
    store.close()
    store = Store.open(path)
    assert values(store.list(THINGS)) == {"a": 1, "b": 1}
    store.close()


async def test_closing_tells_what_it_could_not_keep_and_gives_the_file_back(path):
    store = Store.open(path)
    put(store, key("a"), 1)
    with no_room_on_the_disk(), pytest.raises(StoreFailed):
        store.close()
    store = Store.open(path)
    assert store.list(THINGS) == []
    store.close()


async def test_what_cannot_be_written_for_another_reason_fails_alike(store):
    put(store, key("a"), 1)
    await store.settled()
    put(store, key("a"), 2)
    put(store, key("not-utf-8-\ud800"), 1)
    with capture_logs() as logs, pytest.raises(StoreFailed, match=r"changes cannot be written: .* can't encode"):
        await store.settled()
    assert values(store.list(THINGS)) == {"a": 1}
    assert [(entry["event"], entry["changes"]) for entry in logs] == [("changes not written", 2)]


async def test_whoever_writes_after_the_end_is_told_and_does_not_wait(path):
    store = Store.open(path)
    store.close()
    put(store, key("a"), 1)
    with capture_logs(), pytest.raises(StoreFailed, match="closed database"):
        await asyncio.wait_for(store.settled(), 5)


async def test_a_history_that_cannot_be_tidied_stays_known(store):
    put(store, key("a"), 1)
    put(store, key("a"), 2)
    await store.settled()
    with no_room_on_the_disk(), pytest.raises(StoreFailed):
        store.forget(store.version)
    assert store.oldest == 1
    assert values(store.list_at(THINGS, "", 2)) == {"a": 1}


async def test_a_full_disk_is_told_and_used_again_once_there_is_room():
    """On a disk of its own, which is full for real."""
    program = Path(__file__).with_name("full_disk.py")
    mounting = 'mount -t tmpfs -o size=512k tmpfs /mnt && exec "$@"'
    alone = ["unshare", "--mount", "--propagation=private", "sh", "-c", mounting, "sh"]
    done = subprocess.run([*alone, sys.executable, str(program), "/mnt"], capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.splitlines() == [
        "/mnt/state.db: no space left on its disk; free some and try again",
        "what was acknowledged is there",
        "there is room again",
    ]
