"""What the agent reads of a container's processes: the living alone, and nothing of a file that is something else."""

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from tessera.errors import InvalidRegion
from tessera.node import regions
from tessera.node.regions import RegionProcess, discard_region, read_region
from tests.unit.node.making_regions import MIB, live, write_region


@pytest.fixture
def region(tmp_path: Path) -> Path:
    return tmp_path / "region"


def test_living_processes_are_summed_up_and_the_dead_passed_over(region: Path):
    write_region(region, (7, 700, 100 * MIB), (8, 800, 1000 * MIB), (9, 0, 10 * MIB), gpu_ns=5, refusals=2)
    first, third = live(region, 0), live(region, 2)
    found = read_region(region)
    assert found
    assert found.processes == (RegionProcess(7, 700), RegionProcess(9, 0))
    (card,) = found.cards
    assert (card.uuid, card.used_bytes, card.gpu_ns, card.refusals) == ("GPU-0", 110 * MIB, 5, 2)
    os.close(first)
    found = read_region(region)
    assert found
    assert (found.processes, found.cards[0].used_bytes) == ((RegionProcess(9, 0),), 10 * MIB)
    os.close(third)


def test_what_nobody_claims_is_used_as_long_as_somebody_lives(region: Path):
    write_region(region, (7, 700, 100 * MIB), unclaimed_bytes=30 * MIB)
    descriptor = live(region, 0)
    found = read_region(region)
    assert found
    assert found.cards[0].used_bytes == 130 * MIB
    os.close(descriptor)
    found = read_region(region)
    assert found
    assert found.cards[0].used_bytes == 0


def test_a_slot_that_was_given_back_is_nobodys_although_its_lock_is_held(region: Path):
    write_region(region, (0, 0, 5 * MIB))
    descriptor = live(region, 0)
    found = read_region(region)
    assert found
    assert (found.processes, found.cards[0].used_bytes) == ((), 0)
    os.close(descriptor)


@pytest.mark.parametrize("content", [None, b"", b"\0" * regions.SIZE])
def test_where_nobody_has_come_yet_there_is_nothing_to_read(region: Path, content: bytes | None):
    if content is not None:
        region.write_bytes(content)
    assert read_region(region) is None


def other_version(path: Path) -> None:
    write_region(path)
    path.write_bytes(regions.HEAD.pack(regions.MAGIC, 1, 0) + path.read_bytes()[regions.HEAD.size :])


def link_to_anothers(path: Path) -> None:
    write_region(path.with_name("another's"))
    path.symlink_to(path.with_name("another's"))


SPOILERS: dict[str, Callable[[Path], object]] = {
    "short": lambda path: path.write_bytes(b"x"),
    "of noise": lambda path: path.write_bytes(os.urandom(regions.SIZE)),
    "of another version": other_version,
    "longer": lambda path: path.write_bytes(b"\0" * (regions.SIZE + 1)),
    "a directory": lambda path: path.mkdir(),
    "a link": link_to_anothers,
    "a pipe": os.mkfifo,
}


@pytest.mark.parametrize("what", SPOILERS)
def test_whatever_else_lies_there_is_one_sentence_and_nobody_is_waited_for(region: Path, what: str):
    SPOILERS[what](region)
    with pytest.raises(InvalidRegion, match=str(region)):
        read_region(region)


def test_more_slots_than_there_are_are_not_looked_for(region: Path, monkeypatch: pytest.MonkeyPatch):
    write_region(region, (7, 700, MIB))
    content = bytearray(region.read_bytes())
    content[: regions.HEAD.size] = regions.HEAD.pack(regions.MAGIC, regions.VERSION, 2**32 - 1)
    region.write_bytes(content)
    descriptor, pread, asked = live(region, 0), os.pread, list[int]()

    def note(file: int, size: int, offset: int) -> bytes:
        asked.append(size)
        return pread(file, size, offset)

    monkeypatch.setattr(os, "pread", note)
    found = read_region(region)
    assert found
    assert len(found.processes) == 1
    assert max(asked) <= regions.SIZE
    os.close(descriptor)


def test_a_container_that_starts_begins_anew_unless_somebody_of_it_lives(region: Path):
    write_region(region, (7, 700, MIB))
    descriptor = live(region, 0)
    discard_region(region)
    assert region.exists()
    os.close(descriptor)
    discard_region(region)
    assert not region.exists()
    discard_region(region)


@pytest.mark.parametrize("left", ["directory", "link", "dead link", "pipe"])
def test_whatever_a_container_left_in_its_place_gives_way_to_a_new_one(region: Path, left: str):
    elsewhere = region.with_name("elsewhere")
    if left == "directory":
        (region / "inner").mkdir(parents=True)
    elif left == "pipe":
        os.mkfifo(region)
    else:
        region.symlink_to(elsewhere)
    if left == "link":
        elsewhere.write_bytes(b"not ours")
    discard_region(region)
    assert not os.path.lexists(region)
    assert left != "link" or elsewhere.exists()


def test_figures_beyond_all_bounds_are_told_as_what_others_can_count(region: Path):
    write_region(region, *[(one, one, 2**64 - 1) for one in (1, 2, 3)], gpu_ns=2**64 - 1, share_percent=2**64 - 1)
    descriptors = [live(region, slot) for slot in range(3)]
    found = read_region(region)
    assert found
    (card,) = found.cards
    assert (card.used_bytes, card.gpu_ns, card.share_percent) == (2**63 - 1, 2**63 - 1, 100)
    for descriptor in descriptors:
        os.close(descriptor)


def test_the_sizes_are_those_of_the_library():
    assert (regions.HEAD.size, regions.CARD.size, regions.SLOT.size) == (64, 128, 576)
