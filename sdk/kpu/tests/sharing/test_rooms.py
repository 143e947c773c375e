"""The memory of a tensor that is gone is used again, never before it is gone, and not kept for ever."""

import numpy as np

from kpu.sharing.allowance import Allowance
from kpu.sharing.rooms import IDLE_SECONDS, SMALLEST_BYTES, WarmRooms
from kpu.tensors import Description, give

LARGE = Description((SMALLEST_BYTES // 4,), "float32")


def make(limit=4 * SMALLEST_BYTES):
    clock = [0.0]
    return WarmRooms(Allowance(limit), now=lambda: clock[0]), clock


def address(room):
    return room.ctypes.data


def test_the_memory_of_a_tensor_that_is_gone_serves_the_next():
    rooms, _ = make()
    room = rooms.make(LARGE)
    where = address(room)
    del room
    assert rooms.idle_bytes == SMALLEST_BYTES
    again = rooms.make(LARGE)
    assert address(again) == where
    assert rooms.idle_bytes == 0
    assert again.flags.writeable


def test_memory_that_any_tensor_still_views_is_not_used_again():
    rooms, _ = make()
    part = np.asarray(give(LARGE, rooms.make(LARGE)))[10:20].reshape(2, 5)
    part[:] = 7
    others = [rooms.make(LARGE) for _ in range(3)]
    for other in others:
        other[:] = 0
    assert (part == 7).all()
    assert rooms.idle_bytes == 0
    del part
    assert rooms.idle_bytes == SMALLEST_BYTES


def test_no_more_than_the_limit_waits_and_the_oldest_leaves():
    rooms, _ = make(limit=2 * SMALLEST_BYTES)
    held = [rooms.make(LARGE) for _ in range(5)]
    held.clear()
    assert rooms.idle_bytes == 2 * SMALLEST_BYTES


def test_what_nobody_came_for_is_let_go():
    rooms, clock = make()
    rooms.make(LARGE)
    clock[0] = IDLE_SECONDS - 1
    rooms.expire()
    assert rooms.idle_bytes == SMALLEST_BYTES
    clock[0] = IDLE_SECONDS
    rooms.expire()
    assert rooms.idle_bytes == 0


def test_what_waits_gives_way_at_once_when_the_memory_is_needed():
    rooms, _ = make()
    rooms.make(LARGE)
    rooms.clear()
    assert rooms.idle_bytes == 0


def test_nothing_waits_where_the_server_as_a_whole_has_no_room():
    whole = Allowance(2 * SMALLEST_BYTES)
    rooms = WarmRooms(Allowance(2 * SMALLEST_BYTES, whole))
    assert whole.take(SMALLEST_BYTES + 1)
    rooms.make(LARGE)
    assert rooms.idle_bytes == 0


def test_small_tensors_have_memory_of_their_own():
    rooms, _ = make()
    rooms.make(Description((10,), "float32"))
    assert rooms.idle_bytes == 0


def test_it_is_told_when_a_room_begins_to_wait():
    told: list[int] = []
    rooms = WarmRooms(Allowance(4 * SMALLEST_BYTES), when_idle=lambda: told.append(rooms.idle_bytes))
    room = rooms.make(LARGE)
    assert told == []
    del room
    assert told == [SMALLEST_BYTES]
