"""Memory that is freed in a stream is the container's until the stream has come so far."""

import pytest

from tests.native.machines import CONTEXT_MIB, end, first_lines

LIMIT_MIB = 2_000
ROOM_MIB = LIMIT_MIB - CONTEXT_MIB
HELD_MIB = 1_000
OUT_OF_MEMORY = 2
BEGIN = """from tests.native.taking import *
assert cuda.init() == 0
assert cuda.enter() == 0
memory, address, on = ctypes.c_void_p(), u64(), u64()
assert lib.cuMemHostAlloc(ctypes.byref(memory), size(64), 3) == 0
assert lib.cuMemHostGetDevicePointer_v2(ctypes.byref(address), memory, 0) == 0
ctypes.memset(memory, 0, 64)
assert lib.cuStreamCreate(ctypes.byref(on), 1) == 0
assert lib.cuStreamWaitValue32_v2(on, address, 1, 0) == 0
"""
FREED = f"_, back = alloc({HELD_MIB} * MIB)\nassert lib.cuMemFreeAsync(back.args[0], on) == 0\n"
LET_GO = "ctypes.memset(memory, 1, 1)\n"


@pytest.fixture
def container(container):
    container.limit(LIMIT_MIB)
    return container


def test_it_cannot_be_had_again_before_the_stream_has_freed_it(container):
    script = f"""{BEGIN}{FREED}
print(alloc({HELD_MIB} * MIB)[0], cuda.free_mib(), flush=True)
input()
{LET_GO}print(lib.cuStreamSynchronize(on), alloc({HELD_MIB} * MIB)[0])
"""
    with container.start(script) as program:
        assert first_lines([program]) == [f"{OUT_OF_MEMORY} {ROOM_MIB - HELD_MIB}"]
        assert container.machine.held_mib() <= LIMIT_MIB
        assert program.communicate("\n")[0] == "0 0\n"


def test_a_program_that_looks_sees_when_it_is_free(container):
    script = f"{BEGIN}{FREED}{LET_GO}print(lib.cuStreamSynchronize(on), cuda.free_mib())"
    assert container.run(script) == f"0 {ROOM_MIB}"


def test_it_goes_with_its_context(container):
    script = f"{BEGIN}{FREED}{LET_GO}print(cuda.leave(), cuda.enter(), cuda.free_mib())"
    assert container.run(script) == f"0 0 {ROOM_MIB}"


def test_a_child_has_none_of_it(container):
    script = f"""{BEGIN}{FREED}
import os
child = os.fork()
if child == 0:
    os._exit(cuda.init() or cuda.enter() or cuda.free_mib() != {ROOM_MIB - CONTEXT_MIB - HELD_MIB})
print(os.waitpid(child, 0)[1], cuda.free_mib())
{LET_GO}"""
    with container.start(script) as program:
        assert first_lines([program]) == [f"0 {ROOM_MIB - HELD_MIB}"]
        end([program])
