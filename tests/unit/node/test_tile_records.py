"""Tiles that another process writes: seen when they come and go, and never touched."""

import asyncio
from pathlib import Path

import pytest

from tessera.node.tile_records import LOOK_AGAIN_S, TileRecords
from tessera.node.tile_store import TileStore
from tessera.vendors.rendering import ContainerEdits
from tests.builders import a_share
from tests.unit.kube.clocks import FakeClock
from tests.unit.node.making import a_tile


@pytest.fixture
def store(tmp_path: Path) -> TileStore:
    return TileStore(tmp_path / "state", tmp_path / "cdi")


def test_tiles_are_those_that_the_store_has_now(store: TileStore, tmp_path: Path):
    tile = a_tile(store.new_token())
    store.write(tile, ContainerEdits())
    records = TileRecords(tmp_path / "state")
    assert list(records) == [tile]

    other = a_tile(tile.token, a_share("GPU-7", 2000, 20))
    store.write(other, ContainerEdits())
    assert records.look()
    assert list(records) == [other]

    store.remove(tile.token)
    assert records.look()
    assert list(records) == []
    assert not records.look()


def test_a_directory_that_is_not_there_yet_is_waited_for_and_not_made(tmp_path: Path):
    records = TileRecords(tmp_path / "state")
    assert list(records) == []
    assert not (tmp_path / "state").exists()

    store = TileStore(tmp_path / "state", tmp_path / "cdi")
    store.write(tile := a_tile(store.new_token()), ContainerEdits())
    assert records.look()
    assert list(records) == [tile]


def test_a_record_that_cannot_be_read_does_not_hide_the_others(store: TileStore, tmp_path: Path):
    store.write(tile := a_tile(store.new_token()), ContainerEdits())
    (tmp_path / "state" / "records" / "broken.json").write_text("{")
    assert list(TileRecords(tmp_path / "state")) == [tile]


@pytest.mark.asyncio
async def test_whoever_follows_is_told_of_changes_alone(store: TileStore, tmp_path: Path):
    clock, told = FakeClock(), list[int]()
    records = TileRecords(tmp_path / "state", clock=clock)
    following = asyncio.ensure_future(records.follow(lambda: told.append(len(list(records)))))
    try:
        await clock.until_asleep()
        clock.advance(LOOK_AGAIN_S)
        await clock.until_asleep()
        assert told == []
        store.write(a_tile(store.new_token()), ContainerEdits())
        clock.advance(LOOK_AGAIN_S)
        await clock.until_asleep()
        assert told == [1]
    finally:
        following.cancel()
