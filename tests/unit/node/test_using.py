"""What containers use, from their regions: their own cards alone, shares of time between looks, trouble said once."""

import os
from pathlib import Path

import pytest
from structlog.testing import capture_logs

from tessera.node.run_directory import RunDirectory
from tessera.node.tiles import Tile
from tessera.node.using import ContainerUses
from tests.builders import a_share
from tests.unit.kube.clocks import HastyClock
from tests.unit.node.making import a_tile
from tests.unit.node.making_regions import MIB, live, write_region

pytestmark = pytest.mark.asyncio


class Bed:
    def __init__(self, root: Path, *tiles: Tile) -> None:
        self.run = RunDirectory(root)
        self.clock = HastyClock()
        self.tiles = list(tiles)
        self.finished: set[str] = set()
        self.uses = ContainerUses(
            self.run, lambda: self.tiles, is_unfinished=lambda uid: uid not in self.finished, clock=self.clock
        )

    def region(self, tile: Tile) -> Path:
        return self.run.region(tile.pod.uid, tile.container)


@pytest.fixture
def bed(tmp_path: Path) -> Bed:
    return Bed(tmp_path, a_tile("aa", a_share("GPU-0", 1000, 10)))


async def test_time_is_a_share_of_what_passed_between_two_looks(bed: Bed):
    (tile,) = bed.tiles
    write_region(bed.region(tile), gpu_ns=10**9)
    await bed.uses.look()
    (use,) = bed.uses.uses
    assert use.busy_percent is None, "nobody knows when that was"
    await bed.clock.sleep(4.0)
    write_region(bed.region(tile), gpu_ns=2 * 10**9)
    await bed.uses.look()
    assert bed.uses.uses[0].busy_percent == pytest.approx(25)
    await bed.clock.sleep(4.0)
    write_region(bed.region(tile), gpu_ns=10**8)
    await bed.uses.look()
    assert bed.uses.uses[0].busy_percent is None, "it has begun anew"


async def test_a_card_that_the_container_was_not_given_is_not_shown_whatever_its_region_says(bed: Bed):
    write_region(bed.region(bed.tiles[0]), uuid="GPU-of-another")
    await bed.uses.look()
    assert bed.uses.uses == ()


async def test_a_container_with_two_tiles_of_the_same_cards_is_read_once(bed: Bed):
    (tile,) = bed.tiles
    bed.tiles.append(a_tile("bb", *tile.shares, resource="gpu.scheduling/claim"))
    write_region(bed.region(tile), (7, 700, 5 * MIB))
    descriptor = live(bed.region(tile), 0)
    await bed.uses.look()
    os.close(descriptor)
    (use,) = bed.uses.uses
    assert (use.now.used_bytes, use.processes, use.position) == (5 * MIB, 1, 0)
    assert [process.host_pid for some in bed.uses.processes.values() for process in some] == [700]


async def test_a_region_that_cannot_be_read_is_said_once_and_hides_no_other(bed: Bed):
    told = 0

    def count() -> None:
        nonlocal told
        told += 1

    bed.uses.news.listen(count)
    other = a_tile("bb", uid="uid-2")
    bed.tiles.append(other)
    write_region(bed.region(other))
    write_region(bed.region(bed.tiles[0]))
    bed.region(bed.tiles[0]).write_bytes(b"noise")
    with capture_logs() as lines:
        await bed.uses.look()
        await bed.uses.look()
    assert [line["event"] for line in lines] == ["region not read"]
    assert [use.holder.pod.uid for use in bed.uses.uses] == ["uid-2"]
    assert [holder.pod.uid for holder in bed.uses.unreadable] == ["uid-1"]
    assert told == 1


async def test_a_pod_that_has_ended_is_shown_only_while_a_process_of_it_lives(bed: Bed):
    (tile,) = bed.tiles
    bed.finished.add(tile.pod.uid)
    write_region(bed.region(tile), (7, 700, 5 * MIB))
    descriptor = live(bed.region(tile), 0)
    await bed.uses.look()
    assert [use.now.used_bytes for use in bed.uses.uses] == [5 * MIB]
    os.close(descriptor)
    await bed.uses.look()
    assert bed.uses.uses == ()
    bed.region(tile).write_bytes(b"noise")
    await bed.uses.look()
    assert bed.uses.unreadable == {}, "nobody is left whose limits could not hold"
