"""Tiles on disk: whole or not there, the same after a restart, and gone when they are over."""

import json
import os
import stat
from pathlib import Path
from typing import NamedTuple

import pytest

from tessera.node.limits import limits_text
from tessera.node.tile_store import TileStore
from tessera.node.tiles import Tile
from tessera.vendors.rendering import ContainerEdits, Mount
from tests.builders import a_share
from tests.unit.node.making import a_tile

EDITS = ContainerEdits(environment={"NVIDIA_VISIBLE_DEVICES": "GPU-0"})


class Disk(NamedTuple):
    state: Path
    cdi: Path

    def open(self) -> TileStore:
        return TileStore(self.state, self.cdi)

    def files(self) -> set[str]:
        return {path.name for root in self for path in root.rglob("*") if path.is_file()}


@pytest.fixture
def disk(tmp_path: Path) -> Disk:
    return Disk(tmp_path / "state", tmp_path / "cdi")


def written(store: TileStore, edits: ContainerEdits = EDITS, **changes: str) -> Tile:
    tile = a_tile(store.new_token(), **changes)
    store.write(tile, edits)
    return tile


def test_a_tile_is_a_directory_with_limits_and_a_specification_for_the_runtime(disk: Disk):
    store = disk.open()
    tile = written(store)
    assert (store.directory(tile.token) / "limits").read_text() == limits_text(tile)
    specification = json.loads((disk.cdi / f"tessera-tile-{tile.token}.json").read_text())
    assert specification["devices"][0]["name"] == tile.token


def test_containers_of_any_user_may_read_their_limits_and_nobody_else_our_records(disk: Disk):
    store = disk.open()
    tile = written(store)

    def mode(path: Path) -> int:
        return stat.S_IMODE(path.stat().st_mode)

    assert mode(store.directory(tile.token) / "limits") == 0o644
    assert mode(disk.state / "records" / f"{tile.token}.json") == 0o600


def test_tiles_are_known_after_a_restart(disk: Disk):
    tiles = [written(store := disk.open(), uid="uid-1"), written(store, uid="uid-2")]
    assert sorted(disk.open(), key=lambda tile: tile.pod.uid) == tiles


def test_a_tile_that_is_written_again_is_what_it_was_last(disk: Disk):
    store = disk.open()
    tile = written(store)
    changed = a_tile(tile.token, a_share("GPU-5", 7, 7))
    store.write(changed, EDITS)
    assert list(store) == list(disk.open()) == [changed]
    assert "card GPU-5 memory_mib 7 " in (store.directory(tile.token) / "limits").read_text()


def test_readers_never_see_half_a_file(disk: Disk, monkeypatch: pytest.MonkeyPatch):
    store = disk.open()
    tile = written(store)
    before = (store.directory(tile.token) / "limits").read_text()

    def fail(_: int) -> None:
        raise OSError("no space")

    monkeypatch.setattr(os, "fsync", fail)
    with pytest.raises(OSError, match="no space"):
        store.write(a_tile(tile.token, a_share("GPU-5")), EDITS)
    assert (store.directory(tile.token) / "limits").read_text() == before
    assert list(store) == [tile], "what could not be written is not known"


@pytest.mark.parametrize("writes", [0, 1, 2])
def test_whatever_was_written_before_a_crash_no_container_is_made_from_it(
    disk: Disk, monkeypatch: pytest.MonkeyPatch, writes: int
):
    """The specification is the last of the three files."""
    store, done = disk.open(), 0
    token = store.new_token()
    replace = Path.replace

    def replace_some(path: Path, target: Path) -> Path:
        nonlocal done
        if done == writes:
            raise KeyboardInterrupt
        done += 1
        return replace(path, target)

    monkeypatch.setattr(Path, "replace", replace_some)
    with pytest.raises(KeyboardInterrupt):
        store.write(a_tile(token), EDITS)
    monkeypatch.undo()
    assert f"tessera-tile-{token}.json" not in disk.files()
    again = disk.open()
    assert token in again.tokens(), "it is found and can be removed"
    again.write(a_tile(token), EDITS)
    assert list(again) == [a_tile(token)], "and it can be made after all"


def test_nothing_is_left_of_a_tile_that_was_removed(disk: Disk):
    store = disk.open()
    tile = written(store)
    store.remove(tile.token)
    assert disk.files() == set()
    assert store.tokens() == set()
    assert list(store) == list(disk.open()) == []
    store.remove(tile.token)


def test_what_one_container_wrote_goes_with_it_and_what_all_share_stays(disk: Disk, tmp_path: Path):
    own, shared = tmp_path / "hook" / "containers" / "uid-1_main", tmp_path / "hook" / "lock"
    mounts = (Mount("/a", str(own), False), Mount("/b", str(shared), False), Mount("/c", "/usr/lib/x.so", True))
    tile = written(disk.open(), ContainerEdits(mounts=mounts))
    for directory in (own, shared):
        assert stat.S_IMODE(directory.stat().st_mode) == 0o777, "containers of any user write there"
        (directory / "file").write_text("used")
    disk.open().remove(tile.token)
    assert not own.exists()
    assert (shared / "file").exists()


def test_a_file_that_a_container_writes_is_made_empty_for_anybody_and_again_after_a_boot(disk: Disk, tmp_path: Path):
    own, shared = tmp_path / "run" / "tiles" / "uid-1_main" / "region", tmp_path / "run" / "cards" / "GPU-0"
    mounts = (Mount("/a", str(own), False, is_file=True), Mount("/b", str(shared), False, is_file=True))
    tile = written(disk.open(), ContainerEdits(mounts=mounts))
    shared.write_text("used")
    for file in (own, shared):
        assert stat.S_IMODE(file.stat().st_mode) == 0o666
    written(disk.open(), ContainerEdits(mounts=mounts), uid="uid-2")
    assert shared.read_text() == "used", "others have it open"
    own.unlink()
    disk.open().make_again(tile.token)
    assert own.read_bytes() == b""
    disk.open().remove(tile.token)
    assert (own.parent.exists(), shared.exists()) == (False, True)


def test_a_record_that_cannot_be_read_hides_no_other(disk: Disk):
    tile = written(disk.open())
    (disk.state / "records" / "00.json").write_text("{")
    (disk.state / "records" / "01.json").write_text('{"tile": {"token": 7}}')
    store = disk.open()
    assert list(store) == [tile]
    assert store.tokens() == {tile.token, "00", "01"}
    store.remove("00")
    assert store.tokens() == {tile.token, "01"}


def test_files_of_others_beside_the_specifications_are_not_ours(disk: Disk):
    store = disk.open()
    (disk.cdi / "nvidia.json").write_text("{}")
    assert store.tokens() == set()


def test_a_tile_that_nobody_came_for_is_as_old_as_its_directory(disk: Disk):
    store = disk.open()
    token = store.new_token()
    made_s = store.directory(token).stat().st_mtime
    assert store.age_s(token, made_s + 7.0) == pytest.approx(7.0)
    assert store.age_s("gone", made_s) == float("inf")


def test_every_token_is_another(disk: Disk):
    store = disk.open()
    assert len({store.new_token() for _ in range(50)}) == 50
