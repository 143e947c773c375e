"""A tile may have memory of the host beyond its limit: what does not fit on the card lies there, and is counted."""

import time

import pytest

from tests.native.machines import CONTEXT_MIB, MIB, end, first_lines, region_at

LIMIT_MIB, SPILL_MIB = 2_000, 400
ROOM_MIB = LIMIT_MIB - CONTEXT_MIB
STEP_MIB = 50
OUT_OF_MEMORY = 2
BEGIN = "from tests.native.taking import *\nassert cuda.init() == 0\nassert cuda.enter() == 0\n"


@pytest.fixture
def container(container):
    container.write(f"version 1\ncard {container.machine.uuids[0]} memory_mib {LIMIT_MIB} spill_mib {SPILL_MIB}\n")
    return container


@pytest.mark.parametrize("way", ["alloc", "managed", "pitch"])
def test_what_does_not_fit_on_the_card_lies_in_the_memory_of_the_host(container, way):
    script = f"""{BEGIN}
first, backs, code = fill({way!r}, {STEP_MIB} * MIB)
print(first * {STEP_MIB}, code, flush=True)
input()
assert not any(back() for back in backs)
print(fill({way!r}, {STEP_MIB} * MIB)[0] * {STEP_MIB}, flush=True)
input()
"""
    with container.start(script) as program:
        assert first_lines([program]) == [f"{ROOM_MIB + SPILL_MIB} {OUT_OF_MEMORY}"]
        assert container.machine.held_mib() == LIMIT_MIB
        print("\n", file=program.stdin, flush=True)
        assert first_lines([program]) == [str(ROOM_MIB + SPILL_MIB)]
        end([program])


def test_spilled_memory_is_the_hosts_and_freed_as_any_other(container):
    script = f"""{BEGIN}
fill("alloc", {STEP_MIB} * MIB)
_, back = alloc(64)
code, pitched = pitch(1024)
_, pointer = cuda.take(64)
ctypes.memmove(pointer, b"tessera", 8)
print(code, ctypes.string_at(pointer))
print(back(), pitched(), lib.cuMemFreeAsync(u64(pointer), None), cuda.give_back(pointer))
"""
    container.write(container.limits.read_text().replace(f"spill_mib {SPILL_MIB}", f"spill_mib {SPILL_MIB + 6}"))
    assert container.run(script).split() == ["0", "b'tessera'", "0", "0", "0", "1"]


def test_programs_are_shown_the_limit_and_what_may_spill(container):
    script = f"""{BEGIN}
import pynvml as n
n.nvmlInit()
def show():
    card = n.nvmlDeviceGetHandleByIndex(0)
    memory, (process,) = n.nvmlDeviceGetMemoryInfo(card), n.nvmlDeviceGetComputeRunningProcesses(card)
    figures = memory.total, memory.free, memory.used, process.usedGpuMemory
    print(cuda.memory_mib(0), cuda.free_mib(), *(one // MIB for one in figures))
show()
fill("alloc", {STEP_MIB} * MIB)[1][-1]()
show()
"""
    whole, held = LIMIT_MIB + SPILL_MIB, LIMIT_MIB + SPILL_MIB - STEP_MIB
    assert container.run(script).splitlines() == [
        f"{whole} {ROOM_MIB + SPILL_MIB} {whole} {ROOM_MIB + SPILL_MIB} {CONTEXT_MIB} {CONTEXT_MIB}",
        f"{whole} {STEP_MIB} {whole} {STEP_MIB} {held} {held}",
    ]


def test_all_processes_together_spill_no_more_than_the_tile_may_and_the_dead_nothing(container):
    with container.taker("fill", STEP_MIB) as program:
        assert first_lines([program]) == [str(ROOM_MIB + SPILL_MIB)]
        assert container.run("print(cuda.init(), cuda.enter())") == f"0 {OUT_OF_MEMORY}", "contexts do not spill"
        end([program])
    with container.taker("one", ROOM_MIB - CONTEXT_MIB) as program:
        first_lines([program])
        assert container.filled_mib(STEP_MIB) == SPILL_MIB
        end([program])


def test_whoever_is_killed_while_its_memory_spills_gives_everything_back(container):
    """At twenty moments; it keeps more than the card has for it."""
    container.write(container.limits.read_text().replace(f"memory_mib {LIMIT_MIB}", "memory_mib 1000"))
    for moment in range(20):
        with container.taker("churn", 100) as program:
            while container.machine.held_mib() <= CONTEXT_MIB:
                assert program.poll() is None
            time.sleep(moment * 0.000_3)
            program.kill()
        assert container.filled_mib(50) == 1_000 - CONTEXT_MIB + SPILL_MIB


def test_what_is_spilled_is_counted_under_a_name_of_its_own(container):
    region = container.directory / "region"
    with container.taker("fill", STEP_MIB) as program:
        first_lines([program])
        held = {card.uuid: card.used_bytes for card in region_at(region).cards}
        end([program])
    uuid = container.machine.uuids[0]
    assert held == {uuid: LIMIT_MIB * MIB, f"host-{uuid.removeprefix('GPU-')}": SPILL_MIB * MIB}


def test_a_context_that_ends_gives_back_what_was_spilled_in_it(container):
    script = f"""{BEGIN}
fill("alloc", {STEP_MIB} * MIB)
assert cuda.leave() == 0
assert cuda.enter() == 0
print(cuda.free_mib())
"""
    assert container.run(script) == str(ROOM_MIB + SPILL_MIB)


def test_a_card_that_is_full_of_others_lets_the_tile_spill_too(container, holding):
    holding(14_000)
    free = 15_360 - 14_000 - 2 * CONTEXT_MIB
    assert container.filled_mib(20) == free // 20 * 20 + SPILL_MIB


def test_the_variable_of_hami_lets_as_much_again_spill(container):
    container.limits.unlink()
    variables = {"CUDA_DEVICE_MEMORY_LIMIT": "1000m", "CUDA_OVERSUBSCRIBE": "true"}
    assert container.filled_mib(STEP_MIB, **variables) == 1_000 - CONTEXT_MIB + 1_000
    assert container.filled_mib(STEP_MIB, **variables | {"CUDA_OVERSUBSCRIBE": "false"}) == 1_000 - CONTEXT_MIB


@pytest.mark.parametrize("word", ["spill_mib x", "spill_mib -1", "spill_mib 0", "spill_mib", ""])
def test_nothing_spills_unless_it_is_asked_for_clearly(container, word):
    container.write(f"version 1\ncard {container.machine.uuids[0]} memory_mib {LIMIT_MIB} {word}\n")
    with container.taker("fill", STEP_MIB) as program:
        said = program.communicate("")[0].splitlines()
    assert said[-1] == str(ROOM_MIB)
