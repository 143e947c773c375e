"""The heap that a program gives its kernels is the container's from then on, though the driver takes it later."""

import pytest

from tests.native.machines import CONTEXT_MIB, end, first_lines

LIMIT_MIB = 2_000
MARGIN_MIB = 30
ROOM_MIB = LIMIT_MIB - CONTEXT_MIB - MARGIN_MIB
"""Of a program with code."""
HEAP_MIB = 800
STACK, OUT_OF_MEMORY, INVALID_VALUE = 0, 2, 1
BEGIN = """from tests.native.launching import launch, wait
from tests.native.taking import *
def give(mib, which=2):
    return lib.cuCtxSetLimit(which, size(mib * MIB))
"""


@pytest.fixture
def container(container):
    container.limit(LIMIT_MIB)
    return container


def test_what_is_given_to_it_cannot_be_had_otherwise(container):
    script = f"{BEGIN}print(give({HEAP_MIB}), fill('alloc', 10 * MIB)[0], launch(1000) or wait(), flush=True)\ninput()"
    with container.start(script) as program:
        assert first_lines([program]) == [f"0 {(ROOM_MIB - HEAP_MIB) // 10} 0"]
        assert container.machine.held_mib() <= LIMIT_MIB
        end([program])


def test_one_that_does_not_fit_is_refused(container):
    script = f"{BEGIN}print(give({ROOM_MIB + 2}), give(1 << 43), give({ROOM_MIB}), launch(1000) or wait())"
    assert container.run(script) == f"{OUT_OF_MEMORY} {OUT_OF_MEMORY} 0 0"


def test_it_is_charged_once_when_the_driver_has_taken_it(container):
    script = f"{BEGIN}print(give({HEAP_MIB}), launch(1000) or wait(), fill('alloc', 10 * MIB)[0])"
    assert container.run(script) == f"0 0 {(ROOM_MIB - HEAP_MIB) // 10}"


def test_a_size_that_the_driver_refuses_changes_nothing(container):
    script = f"{BEGIN}print(give(100), launch(1000) or wait(), give({HEAP_MIB}), alloc({ROOM_MIB - 110} * MIB)[0])"
    assert container.run(script) == f"0 0 {INVALID_VALUE} 0"


def test_it_goes_with_its_context(container):
    script = f"{BEGIN}print(give({HEAP_MIB}), lib.cuDevicePrimaryCtxReset_v2(0), cuda.enter(), cuda.free_mib())"
    assert container.run(script) == f"0 0 0 {ROOM_MIB}"


def test_other_limits_are_the_drivers_to_judge(container):
    assert container.run(f"{BEGIN}print(give(1, which={STACK}), cuda.free_mib())") == f"0 {ROOM_MIB}"
