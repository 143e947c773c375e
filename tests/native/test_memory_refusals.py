"""A driver may refuse, and others may die: what is held is charged as it is, neither longer nor shorter."""

import pytest

from tests.native.machines import CONTEXT_MIB, PATIENCE_S, first_lines

LIMIT_MIB = 2_000
ROOM_MIB = LIMIT_MIB - CONTEXT_MIB
HELD_MIB = 500
MARGIN_MIB = LIMIT_MIB // 64
INVALID_VALUE = 1
BEGIN = "from tests.native.taking import *\nassert cuda.init() == 0\nassert cuda.enter() == 0\n"


@pytest.fixture
def container(container):
    container.limit(LIMIT_MIB)
    return container


@pytest.mark.parametrize("free", ["back()", "lib.cuMemFreeAsync(back.args[0], on)"])
def test_a_free_that_a_capture_forbids_can_be_made_after_it(container, free):
    script = f"""{BEGIN}
on, graph = u64(), u64()
assert lib.cuStreamCreate(ctypes.byref(on), 1) == 0
_, back = alloc({HELD_MIB} * MIB)
assert lib.cuStreamBeginCapture_v2(on, 0) == 0
code = {free}
lib.cuStreamEndCapture(on, ctypes.byref(graph))
print(code != 0, cuda.free_mib(), back(), cuda.free_mib())
"""
    assert container.run(script) == f"True {ROOM_MIB - HELD_MIB} 0 {ROOM_MIB}"


def test_a_handle_that_is_released_once_too_often_stays_charged_while_it_is_mapped(container):
    script = f"""{BEGIN}
handle, wish, places, length = u64(), Place(1, 0, DEVICE, 0), (u64(), u64()), size({HELD_MIB} * MIB)
assert lib.cuMemCreate(ctypes.byref(handle), length, ctypes.byref(wish), u64(0)) == 0
for place in places:
    assert lib.cuMemAddressReserve(ctypes.byref(place), length, size(0), u64(0), u64(0)) == 0
    assert lib.cuMemMap(place, length, size(0), handle, u64(0)) == 0
print(lib.cuMemRelease(handle), lib.cuMemRelease(handle), lib.cuMemRelease(handle))
for place in places:
    print(lib.cuMemUnmap(place, length), cuda.free_mib())
"""
    said = container.run(script).splitlines()
    assert said == [f"0 {INVALID_VALUE} {INVALID_VALUE}", f"0 {ROOM_MIB - HELD_MIB}", f"0 {ROOM_MIB}"]


def test_a_first_context_is_not_refused_for_what_the_dead_held(container):
    """They held memory without ever having a context, so nobody knows yet what one takes."""
    take = f"cuda.init()\nprint(create({LIMIT_MIB} * MIB)[0], flush=True)\ninput()"
    with container.start(f"from tests.native.taking import *\n{take}") as program:
        assert first_lines([program]) == ["0"]
        program.kill()
        program.communicate(timeout=PATIENCE_S)
    assert container.run("print(cuda.init(), cuda.enter(), cuda.free_mib())") == f"0 0 {ROOM_MIB}"


def test_what_a_pool_leaves_in_use_is_charged_until_it_is_freed(container):
    """Then NVML tells, as of code: a margin for that stays."""
    script = f"""{BEGIN}
_, back = from_pool({HELD_MIB} * MIB)
print(lib.cuMemPoolDestroy(pools[0]), cuda.free_mib(), back(), alloc({ROOM_MIB - MARGIN_MIB} * MIB)[0])
"""
    destroyed, left, *codes = map(int, container.run(script).split())
    assert (destroyed, *codes) == (0, 0, 0)
    assert left <= ROOM_MIB - HELD_MIB
