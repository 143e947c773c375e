"""What the driver takes for itself counts too: code, and whatever else NVML says that a process has."""

import mmap
import struct
import time
from contextlib import ExitStack

import pytest

from tests.native.machines import CONTEXT_MIB, MIB, PATIENCE_S, SLOT, begin_race, end, first_lines

LIMIT_MIB = 2_000
ROOM_MIB = LIMIT_MIB - CONTEXT_MIB
MARGIN_MIB = 30
"""Of a process with code: the 64th part of the limit, in whole pages."""
REST_MIB = 6
"""What is left of the margin where code has used it up: a quarter, in whole pages."""
BLIND_MARGIN_MIB = 128
STEP_MIB = 2
OUT_OF_MEMORY = 2
BEGIN = "from tests.native.taking import *\nassert cuda.init() == 0\nassert cuda.enter() == 0\n"
FILL = f"fill('alloc', {STEP_MIB} * MIB)[0] * {STEP_MIB}"


@pytest.fixture
def container(container):
    container.limit(LIMIT_MIB)
    return container


@pytest.mark.parametrize(("modules", "kept_mib"), [(1, MARGIN_MIB), (10, MARGIN_MIB), (50, 100 + REST_MIB)])
def test_code_is_charged_and_a_margin_is_kept_for_more_of_it(container, modules, kept_mib):
    script = f"{BEGIN}assert load({modules}) == 0\nprint({FILL}, flush=True)\ninput()"
    with container.start(script) as program:
        taken = int(first_lines([program])[0])
        held = container.machine.held_mib()
        end([program])
    assert taken == ROOM_MIB - kept_mib
    assert 0.95 * LIMIT_MIB <= held <= LIMIT_MIB


def test_a_process_without_room_for_any_code_is_refused_its_first(container):
    assert container.run(f"{BEGIN}{FILL}\nprint(load(1))") == str(OUT_OF_MEMORY)


def test_code_that_comes_when_all_is_taken_stays_within_the_limit_as_far_as_the_margin_goes(container):
    script = f"{BEGIN}load(1)\n{FILL}\nprint(load(14), flush=True)\ninput()"
    with container.start(script) as program:
        assert first_lines([program]) == ["0"]
        assert container.machine.held_mib() <= LIMIT_MIB
        end([program])


FOLLOW = f"""{BEGIN}
while line := input():
    code, back = alloc({STEP_MIB} * MIB)
    if code == 0: back()
    print(cuda.free_mib(), flush=True)
"""


def await_free(program, wanted_mib):
    """The program allocates again and again, because that is when it is looked."""
    deadline = time.monotonic() + PATIENCE_S
    said = None
    while said != wanted_mib:
        assert time.monotonic() < deadline, said
        print("again", file=program.stdin, flush=True)
        said = int(first_lines([program])[0])


def grow(machine, pid, mib):
    """As a driver does at a kernel's first launch, without being asked."""
    with (machine.directory / "memory").open("r+b") as file, mmap.mmap(file.fileno(), 0) as memory:
        slot = next(at for at in range(0, len(memory), SLOT.size) if struct.unpack_from("=i", memory, at)[0] == pid)
        (held,) = struct.unpack_from("=Q", memory, slot + 8)
        struct.pack_into("=Q", memory, slot + 8, held + mib * MIB)


def test_what_no_call_has_shown_is_found_and_charged_and_given_back_again(container):
    with container.start(FOLLOW) as program:
        await_free(program, ROOM_MIB)
        grow(container.machine, program.pid, 400)
        await_free(program, ROOM_MIB - 400 - REST_MIB)
        grow(container.machine, program.pid, -400)
        await_free(program, ROOM_MIB - MARGIN_MIB)
        end([program])


def test_what_a_process_has_grown_by_is_charged_to_all_and_gone_with_it(container):
    with container.start(FOLLOW) as program:
        await_free(program, ROOM_MIB)
        grow(container.machine, program.pid, 400)
        await_free(program, ROOM_MIB - 400 - REST_MIB)
        assert container.filled_mib(STEP_MIB) == ROOM_MIB - CONTEXT_MIB - 400 - REST_MIB
        end([program])
    assert container.filled_mib(STEP_MIB) == ROOM_MIB


def test_a_context_that_ends_takes_what_the_driver_had_for_it_along(container):
    script = f"""{BEGIN}
assert load(50) == 0
print(cuda.free_mib())
unload()
assert cuda.leave() == 0
assert cuda.enter() == 0
print(cuda.free_mib())
"""
    assert container.run(script).split() == [str(ROOM_MIB - 100 - REST_MIB), str(ROOM_MIB)]


def test_managed_memory_that_is_not_on_the_card_hides_nothing(container):
    """It is charged in full, so the process seems to have less than that. Nothing is given back for it."""
    follow = FOLLOW.replace("while", "assert managed(500 * MIB)[0] == 0\nassert load(50) == 0\nwhile")
    with container.start(follow) as program:
        charged = 500 + 100 + REST_MIB
        await_free(program, ROOM_MIB - charged)
        grow(container.machine, program.pid, -500)
        for _ in range(4):
            time.sleep(0.11)  # so that it is looked again
            await_free(program, ROOM_MIB - charged)
        end([program])


@pytest.mark.parametrize("count", [2, 4])
def test_processes_with_code_that_race_stay_within_the_limit_and_get_nearly_all_of_it(container, count):
    limit = 8_000
    container.limit(limit)
    script = f"""{BEGIN}
print("ready", flush=True); input()
assert load(30) == 0
print("ready", flush=True); input()
print({FILL}, flush=True); input()
"""
    with ExitStack() as stack:
        programs = [stack.enter_context(container.start(script)) for _ in range(count)]
        begin_race(programs)
        begin_race(programs)
        taken = [int(line) for line in first_lines(programs)]
        held = container.machine.held_mib()
        end(programs)
    room = limit - count * (CONTEXT_MIB + 60)
    assert held <= limit
    assert 0.95 * room <= sum(taken) <= room


def test_where_nvml_lists_no_process_a_margin_is_kept_for_what_cannot_be_seen(container, holding):
    holding(5_000)
    filled = container.filled_mib(STEP_MIB, TESSERA_SIM_NO_PROCESSES="1")
    assert filled == ROOM_MIB - BLIND_MARGIN_MIB


def test_whoever_is_killed_while_loading_code_gives_everything_back(container):
    """At twenty moments over a start, and while it loads and allocates."""
    load_for_ever = f"{BEGIN}print('begun', flush=True)\nwhile True: load(1); alloc({STEP_MIB} * MIB)[1]()"
    for moment in range(20):
        with container.start(load_for_ever) as program:
            assert first_lines([program]) == ["begun"]
            time.sleep(moment * 0.000_5)
            program.kill()
        assert container.filled_mib(50) == ROOM_MIB
