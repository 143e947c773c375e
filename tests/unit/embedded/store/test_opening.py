"""Opening: what is ours and whole is found again, anything else is refused with one sentence."""

import asyncio
import os
import re
import sqlite3
import stat
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tessera.embedded.store import Store
from tessera.errors import InvalidStore, StoreFailed, StoreInUse
from tests.unit.embedded.store.storing import THINGS, key, no_room_on_the_disk, put


def contents(store: Store):
    history = list(store._database.changes(THINGS, store.oldest, store.version))
    return store.version, store.oldest, store.list(THINGS), history


async def fill(path: Path):
    """Objects, versions of the past, a deletion, a forgotten part: all that a file can hold."""
    store = Store.open(path)
    for number in range(12):
        put(store, key(f"thing-{number}"), "x" * 300 * number)
    await store.settled()
    store.forget(6)
    for number in range(3):
        put(store, key(f"thing-{number}"), "changed")
    store.delete(key("thing-5"), expected=7)
    await store.settled()
    held = contents(store)
    store.close()
    return held


@pytest.fixture(scope="module")
def filled(tmp_path_factory):
    """The bytes of a closed state file, and what is in it."""
    path = tmp_path_factory.mktemp("filled") / "state.db"
    held = asyncio.run(fill(path))
    assert sorted(child.name for child in path.parent.iterdir()) == ["state.db", "state.db.lock"]
    return path.read_bytes(), held


def refusal(path: Path, error: type[Exception]) -> str:
    """The one sentence, without the path that it begins with."""
    with pytest.raises(error) as refused:
        Store.open(path)
    sentence = str(refused.value)
    assert sentence.startswith(f"{path}: ")
    assert "\n" not in sentence
    return sentence.removeprefix(f"{path}: ")


def test_a_new_file_is_made_where_there_is_none(path):
    store = Store.open(path)
    assert (store.version, store.oldest, store.list(THINGS)) == (1, 1, [])
    store.close()


@pytest.mark.usefixtures("store")
def test_nobody_else_can_read_what_secrets_are_in(path):
    for file in path.parent.iterdir():
        assert stat.S_IMODE(file.stat().st_mode) == 0o600


@pytest.mark.usefixtures("store")
def test_a_second_opening_is_refused_with_the_holders_process(path):
    with pytest.raises(StoreInUse) as refused:
        Store.open(path)
    assert str(refused.value) == (
        f"{path}: in use by process {os.getpid()}; stop it first, or choose another state directory"
    )


def test_another_process_is_refused_too_and_not_once_the_first_is_gone(path):
    program = f"""
import pathlib
from tessera.embedded.store import Store
store = Store.open(pathlib.Path({str(path)!r}))
print("open", flush=True)
input()
"""
    holder = subprocess.Popen([sys.executable, "-c", program], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    with holder:
        assert holder.stdout
        assert holder.stdout.readline() == b"open\n"
        assert f"in use by process {holder.pid};" in refusal(path, StoreInUse)
        holder.kill()
    Store.open(path).close()


def test_a_file_of_another_kind_is_refused_and_left_alone(path):
    for content in (b"Dear diary", b"\x7fELF" * 5_000):
        path.write_bytes(content)
        assert refusal(path, InvalidStore) == (
            "no state file of Tessera; move it away, or choose another state directory"
        )
        assert path.read_bytes() == content


def test_the_database_of_another_program_is_refused_and_left_alone(path):
    with sqlite3.connect(path) as other:
        other.execute("CREATE TABLE log (message TEXT)")
    other.close()
    content = path.read_bytes()
    assert refusal(path, InvalidStore).startswith("no state file of Tessera;")
    assert path.read_bytes() == content


def test_a_file_of_a_newer_layout_is_refused(path, filled):
    path.write_bytes(filled[0])
    newer = sqlite3.connect(path)
    newer.execute("PRAGMA user_version = 7")
    newer.close()
    assert refusal(path, InvalidStore) == (
        "has layout 7, expected 1; use the version of Tessera that wrote it, or choose another state directory"
    )


@pytest.mark.parametrize("kept", [0.2, 0.5, 0.9])
def test_a_file_that_was_cut_short_is_refused(path, filled, kept):
    path.write_bytes(filled[0][: int(len(filled[0]) * kept)])
    assert re.fullmatch(
        "damaged: .*; put a copy in its place, or move it away and begin anew", refusal(path, InvalidStore)
    )


def test_a_file_with_a_page_of_zeros_is_refused(path, filled):
    whole = filled[0]
    for start in range(4096, len(whole), 4096):
        path.write_bytes(whole[:start] + bytes(4096) + whole[start + 4096 :])
        assert refusal(path, InvalidStore).startswith("damaged: ")


def test_a_page_that_hides_a_row_is_refused(path, filled):
    """Each row that is left is whole: only what SQLite knows of its pages can tell."""
    whole = filled[0]
    leaves = [start for start in range(4096, len(whole), 4096) if whole[start] == 0x0D]
    for start in leaves:
        cells = int.from_bytes(whole[start + 3 : start + 5])
        path.write_bytes(whole[: start + 3] + (cells - 1).to_bytes(2) + whole[start + 5 :])
        assert refusal(path, InvalidStore).startswith("damaged: ")


@pytest.mark.parametrize(
    ("statement", "damage"),
    [
        ("DELETE FROM log WHERE version = 2", "the version that 14 replaced is missing"),
        ("UPDATE known SET oldest = 3", "it does not say how far back it goes"),
        ("DELETE FROM known", "it does not say how far back it goes"),
        ("DROP TABLE known", "no such table: known"),
    ],
)
def test_a_history_that_others_tampered_with_is_refused(path, filled, statement, damage):
    path.write_bytes(filled[0])
    with sqlite3.connect(path) as tampering:
        tampering.execute(statement)
    tampering.close()
    assert refusal(path, InvalidStore).startswith(f"damaged: {damage};")


def opened_or_refused(path: Path):
    try:
        store = Store.open(path)
    except InvalidStore as refused:
        return "one sentence" if "\n" not in str(refused) else "several lines"
    with closing(store):
        return contents(store)


@given(somewhere=st.integers(0, 1_000_000), mask=st.integers(1, 255))
def test_turned_bits_are_noticed_or_do_no_harm(tmp_path_factory, filled, somewhere, mask):
    whole, held = filled
    position = somewhere % len(whole)
    path = tmp_path_factory.mktemp("turned") / "state.db"
    path.write_bytes(whole[:position] + bytes([whole[position] ^ mask]) + whole[position + 1 :])
    assert opened_or_refused(path) in (held, "one sentence")


def test_a_body_that_is_not_as_it_was_written_is_named_by_its_version(path, filled):
    whole = filled[0]
    at = whole.rindex(b'"resourceVersion":"16"')
    path.write_bytes(whole[:at] + whole[at:].replace(b"changed", b"chAnged", 1))
    assert refusal(path, InvalidStore).startswith("damaged: version 16 is not as it was written;")


def test_a_directory_that_is_not_there_is_told(tmp_path):
    path = tmp_path / "none" / "state.db"
    assert refusal(path, StoreFailed) == (
        "cannot be read or written: No such file or directory; check its disk and its permissions"
    )


def test_a_refused_file_is_not_held(path):
    path.write_bytes(b"Dear diary")
    refusal(path, InvalidStore)
    path.unlink()
    Store.open(path).close()


def test_a_first_opening_that_was_cut_short_is_begun_again(path):
    with no_room_on_the_disk(), pytest.raises(StoreFailed):
        Store.open(path)
    Store.open(path).close()
