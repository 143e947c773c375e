"""Contexts that come about where the library does not see it are charged all the same: those of green contexts."""

import pytest

from tests.native.machines import CONTEXT_MIB, end, first_lines

LIMIT_MIB = 2_000
ROOM_MIB = LIMIT_MIB - CONTEXT_MIB
GUESSED_MIB, BLIND_MARGIN_MIB = 520, 128
GREEN = """from tests.native.taking import *
green, context = u64(), u64()
assert cuda.init() == 0
assert lib.cuGreenCtxCreate(ctypes.byref(green), None, 0, 1) == 0
assert lib.cuCtxFromGreenCtx(ctypes.byref(context), green) == 0
"""


@pytest.fixture
def container(container):
    container.limit(LIMIT_MIB)
    return container


@pytest.mark.parametrize("enter", ["lib.cuCtxSetCurrent(context)", "cuda.enter()"])
def test_no_more_than_the_limit_is_had_in_a_context_that_the_driver_made(container, enter):
    script = f"{GREEN}assert {enter} == 0\nprint(fill('alloc', 50 * MIB)[2], flush=True)\ninput()"
    with container.start(script) as program:
        assert first_lines([program]) == ["2"]
        held = container.machine.held_mib()
        end([program])
    assert 0.9 * LIMIT_MIB <= held <= LIMIT_MIB


@pytest.mark.parametrize("way", ["stream_ordered", "from_pool", "array", "create"])
def test_its_memory_counts_whatever_is_taken_first(container, way):
    script = f"{GREEN}assert lib.cuCtxSetCurrent(context) == 0\nprint(fill({way!r}, 50 * MIB)[2], flush=True)\ninput()"
    with container.start(script) as program:
        assert first_lines([program]) == ["2"]
        assert container.machine.held_mib() <= LIMIT_MIB
        end([program])


def test_a_program_that_only_looks_is_told_of_it(container):
    assert int(container.run(f"{GREEN}assert lib.cuCtxSetCurrent(context) == 0\nprint(cuda.free_mib())")) <= ROOM_MIB


def test_where_nvml_lists_no_process_a_likely_figure_is_charged(container):
    script = f"{GREEN}assert lib.cuCtxSetCurrent(context) == 0\nprint(cuda.free_mib())"
    left = LIMIT_MIB - GUESSED_MIB - BLIND_MARGIN_MIB
    assert container.run(script, TESSERA_SIM_NO_PROCESSES="1") == str(left)


def test_it_is_given_back_with_the_green_context(container):
    script = f"""{GREEN}
assert lib.cuCtxSetCurrent(context) == 0
cuda.free_mib()
assert lib.cuGreenCtxDestroy(green) == 0
print(cuda.enter(), cuda.free_mib())
"""
    assert container.run(script) == f"0 {ROOM_MIB}"


@pytest.mark.parametrize(
    "ends", [("lib.cuGreenCtxDestroy(green)", "cuda.leave()"), ("cuda.leave()", "lib.cuGreenCtxDestroy(green)")]
)
def test_a_primary_context_that_was_there_before_is_given_back_with_its_last_use(container, ends):
    script = f"""{GREEN}
assert cuda.enter() == 0
assert {ends[0]} == {ends[1]} == 0
print(cuda.enter(), cuda.free_mib())
"""
    assert container.run(script) == f"0 {ROOM_MIB}"


def test_launches_of_a_green_context_that_is_gone_harm_nobody(tenant):
    tenant.limit(30)
    script = """
green, context = ctypes.c_void_p(), ctypes.c_void_p()
for _ in range(3):
    assert lib.cuGreenCtxCreate(ctypes.byref(green), None, 0, 1) == 0
    assert lib.cuCtxFromGreenCtx(ctypes.byref(context), green) == lib.cuCtxSetCurrent(context) == 0
    for _ in range(20):
        assert launch(100_000) == 0
    assert lib.cuGreenCtxDestroy(green) == cuda.enter() == 0
    time.sleep(0.05)  # the library's thread looks after what is under way
print(launch(1000) or lib.cuCtxSynchronize())
"""
    assert tenant.run(script) == "0"
