"""A region is memory that no peer can take away; what a peer offers is checked before it is mapped."""

import fcntl
import gc
import os
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kpu.sharing.mappings import view_again
from kpu.sharing.regions import BadRegion, fill, make_region, map_offered, page_in, round_up

MIB = 1 << 20


def _mappings_of(inode: int) -> int:
    lines = Path("/proc/self/maps").read_text().splitlines()
    return sum(f" {inode} " in line and "memfd:kpu-tensor" in line for line in lines)


def _memfd(size: int, seals: int) -> int:
    fd = os.memfd_create("test", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
    os.ftruncate(fd, size)
    fcntl.fcntl(fd, fcntl.F_ADD_SEALS, seals)
    return fd


@given(st.integers(0, 1 << 45))
def test_a_region_has_room_for_its_bytes_and_little_more(nbytes):
    size = round_up(nbytes)
    assert nbytes <= size <= max(4096, nbytes * 9 / 8 + 4096)
    assert size % 4096 == 0
    assert round_up(size) == size


def test_nobody_can_shrink_or_grow_a_region():
    region = make_region(MIB)
    for size in (0, 2 * MIB):
        with pytest.raises(PermissionError):
            os.ftruncate(region.fd, size)


def test_nobody_can_loosen_the_seals_of_a_region():
    region = make_region(MIB)
    with pytest.raises(PermissionError):
        fcntl.fcntl(region.fd, fcntl.F_ADD_SEALS, fcntl.F_SEAL_WRITE)


@pytest.mark.parametrize("nbytes", [1, 4095, 4096, 3 * MIB + 17])
def test_a_region_holds_what_was_filled_in_when_fresh_and_when_used_before(nbytes):
    random = np.random.default_rng(nbytes)
    region = make_region(nbytes)
    for _ in range(3):
        data = random.integers(0, 256, nbytes, dtype=np.uint8)
        fill(region, data)
        assert np.array_equal(region.memory[:nbytes], data)


def test_paging_in_changes_no_byte_and_ends():
    region = make_region(3 * MIB)
    data = np.random.default_rng(0).integers(0, 256, 2 * MIB + 5, dtype=np.uint8)
    fill(region, data)
    turns = 0
    while page_in(region, MIB):
        turns += 1
    assert turns == 2
    assert np.array_equal(region.memory[: data.nbytes], data)
    assert region.paged == region.written == data.nbytes


def test_memory_is_unmapped_with_the_last_array_that_views_it():
    region = make_region(MIB)
    inode = os.fstat(region.fd).st_ino
    view = view_again(region.memory.data, 100, 50)[10:20].view(np.uint8)
    del region
    gc.collect()
    assert _mappings_of(inode) == 1
    view[:] = 7
    del view
    gc.collect()
    assert _mappings_of(inode) == 0


def test_a_region_that_is_dropped_closes_its_descriptor():
    region = make_region(MIB)
    fd = region.fd
    del region
    gc.collect()
    with pytest.raises(OSError, match="Bad file descriptor"):
        os.fstat(fd)


def test_what_is_offered_and_sealed_is_mapped_and_shared():
    region = make_region(MIB)
    mapped = map_offered(region.fd, MIB)
    mapped[5] = 42
    assert region.memory[5] == 42


def test_an_unsealed_memfd_is_refused_because_it_could_be_cut_short_under_us():
    fd = _memfd(MIB, fcntl.F_SEAL_GROW)
    with pytest.raises(BadRegion, match="not sealed against shrinking"):
        map_offered(fd, MIB)
    os.close(fd)


@pytest.mark.parametrize("size", [MIB + 1, 1 << 60, 0])
def test_a_memfd_smaller_than_it_is_said_to_be_is_refused(size):
    fd = _memfd(MIB, fcntl.F_SEAL_SHRINK)
    with pytest.raises(BadRegion, match=f"expected at least the {size} "):
        map_offered(fd, size)
    os.close(fd)


def test_a_file_of_another_kind_is_refused(tmp_path):
    (tmp_path / "file").write_bytes(bytes(MIB))
    reader, writer = os.pipe()
    plain = os.open(tmp_path / "file", os.O_RDWR)
    for fd in (reader, plain):
        with pytest.raises(BadRegion, match="no memfd"):
            map_offered(fd, MIB)
    for fd in (reader, writer, plain):
        os.close(fd)
