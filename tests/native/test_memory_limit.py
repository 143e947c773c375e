"""A container can not get more memory of a card than its tile has, however its programs ask for it."""

import select
from contextlib import ExitStack

import pytest

from tests.native.machines import CONTEXT_MIB, PATIENCE_S, begin_race, end, first_lines

LIMIT_MIB = 2_000
ROOM_MIB = LIMIT_MIB - CONTEXT_MIB
STEP_MIB = 50
BLIND_MARGIN_MIB = 128
"""For what the driver takes for itself, where NVML does not know the process."""
OUT_OF_MEMORY = 2
WAYS = (
    *("alloc", "managed", "pitch", "array", "array_3d", "mipmapped", "create", "mapped"),
    *("array_v1", "array_3d_v1", "stream_ordered", "stream_ordered_ptsz"),
    *("from_pool", "from_pool_ptsz", "from_pool_of_device", "from_pool_of_location"),
)
BEGIN = "from tests.native.taking import *\nassert cuda.init() == 0\nassert cuda.enter() == 0\n"


@pytest.fixture
def container(container):
    container.limit(LIMIT_MIB)
    return container


@pytest.mark.parametrize("way", WAYS)
def test_memory_of_every_kind_stays_within_the_limit_and_can_be_taken_again(container, way):
    script = f"""{BEGIN}
first, backs, code = fill({way!r}, {STEP_MIB} * MIB)
print(first, code, flush=True)
input()
assert not any(back() for back in backs)
print(fill({way!r}, {STEP_MIB} * MIB)[0], flush=True)
input()
"""
    with container.start(script) as program:
        first, code = map(int, first_lines([program])[0].split())
        held = container.machine.held_mib()
        print("\n", file=program.stdin, flush=True)
        again = first_lines([program])[0]
        end([program])
    assert (code, again) == (OUT_OF_MEMORY, str(first))
    assert 0.95 * LIMIT_MIB <= held <= LIMIT_MIB


def test_kinds_of_memory_share_one_limit_and_what_pools_keep_is_let_go_of_for_others(container):
    script = f"""{BEGIN}
_, backs, _ = fill("stream_ordered", {STEP_MIB} * MIB)
print(alloc(STEP * MIB)[0])
assert not any(back() for back in backs)
print(fill("alloc", {STEP_MIB} * MIB)[0], alloc(STEP * MIB)[0])
""".replace("STEP *", f"{STEP_MIB} *")
    assert container.run(script).split() == [str(OUT_OF_MEMORY), str(ROOM_MIB // STEP_MIB), str(OUT_OF_MEMORY)]


def test_small_blocks_share_pages_as_they_do_on_the_card(container):
    script = f"""{BEGIN}
blocks = [alloc(1024) for _ in range(4_000)]
assert not any(code for code, _ in blocks)
print(cuda.free_mib(), flush=True)
assert not any(back() for _, back in blocks)
print(cuda.free_mib())
"""
    assert container.run(script).split() == [str(ROOM_MIB - 4), str(ROOM_MIB)]


def test_memory_by_handle_is_charged_to_the_card_that_it_names(container):
    container.limit(LIMIT_MIB, 500)
    script = f"{BEGIN}print(create(502 * MIB, device=1)[0], create(500 * MIB, device=1)[0], create(502 * MIB)[0])"
    assert container.run(script).split() == [str(OUT_OF_MEMORY), "0", "0"]


def test_what_the_library_did_not_see_allocated_is_the_drivers_to_free(container):
    assert container.run(f"{BEGIN}print(cuda.give_back(0), cuda.give_back(4096))") == "0 1"


def test_a_context_is_charged_and_given_back_with_all_that_was_allocated_in_it(container):
    script = f"""{BEGIN}
assert fill("alloc", {STEP_MIB} * MIB)[2] == {OUT_OF_MEMORY}
assert cuda.leave() == 0
assert cuda.enter() == 0
print(cuda.free_mib(), fill("alloc", {STEP_MIB} * MIB)[0])
"""
    assert container.run(script) == f"{ROOM_MIB} {ROOM_MIB // STEP_MIB}"


def test_a_context_is_measured_by_the_card_where_nvml_lists_no_process(container, holding):
    holding(5_000)
    assert container.filled_mib(2, TESSERA_SIM_NO_PROCESSES="1") == ROOM_MIB - BLIND_MARGIN_MIB


def test_a_measured_context_that_no_card_has_is_not_believed(container):
    simulated = container.machine.directory / "cards"
    simulated.write_text(simulated.read_text().replace(f"\t{CONTEXT_MIB}\t", "\t10\t"))
    script = "cuda.init(); cuda.enter(); print(cuda.free_mib())"
    assert container.run(script, TESSERA_SIM_NO_PROCESSES="1") == str(LIMIT_MIB - 520 - BLIND_MARGIN_MIB)


@pytest.mark.parametrize(
    ("entry", "wish", "end"),
    [
        ("cuCtxCreate", "0", "cuCtxDestroy"),
        ("cuCtxCreate_v2", "0", "cuCtxDestroy_v2"),
        ("cuCtxCreate_v3", "None, 0, 0", "cuCtxDestroy_v2"),
        ("cuCtxCreate_v4", "None, 0", "cuCtxDestroy_v2"),
    ],
)
def test_contexts_that_a_program_makes_itself_are_charged_too(container, entry, wish, end):
    script = f"""{BEGIN}
contexts = [u64() for _ in range(10)]
codes = [lib.{entry}(ctypes.byref(context), {wish}, 0) for context in contexts]
print(codes.count(0), codes[-1])
assert alloc(20 * MIB)[0] == 0
assert [lib.{end}(context) for context, code in zip(contexts, codes) if code == 0].count(0) == 5
assert cuda.enter() == 0
print(cuda.free_mib())
"""
    assert container.run(script).split() == ["5", str(OUT_OF_MEMORY), str(ROOM_MIB)]


def test_memory_in_the_order_of_a_stream_is_charged_to_the_card_of_the_stream(container):
    first, second = container.machine.uuids[:2]
    container.limits.write_text(f"version 1\ncard {first} memory_mib {LIMIT_MIB}\ncard {second} memory_mib 1000\n")
    script = f"""{BEGIN}
assert cuda.enter(1) == 0
on, pointer = u64(), u64()
assert lib.cuStreamCreate(ctypes.byref(on), 1) == 0
assert cuda.enter(0) == 0
print(lib.cuMemAllocAsync(ctypes.byref(pointer), ctypes.c_size_t(1200 * MIB), on), cuda.free_mib())
print(lib.cuMemAllocAsync(ctypes.byref(pointer), ctypes.c_size_t(320 * MIB), on), cuda.free_mib())
assert cuda.enter(1) == 0
print(cuda.free_mib())
"""
    said = container.run(script).split()
    assert said == [str(OUT_OF_MEMORY), str(ROOM_MIB), "0", str(ROOM_MIB), str(1000 - CONTEXT_MIB - 320)]


def test_what_a_pool_keeps_is_charged_until_it_is_trimmed_or_gone(container):
    script = f"""{BEGIN}
_, back = from_pool(320 * MIB)
assert back() == 0
print(cuda.free_mib())
lib.cuMemPoolTrimTo(pools[0], size(64 * MIB))
print(cuda.free_mib())
lib.cuMemPoolDestroy(pools[0])
print(cuda.free_mib())
"""
    assert container.run(script).split() == [str(ROOM_MIB - 320), str(ROOM_MIB - 64), str(ROOM_MIB)]


def test_a_pool_that_grows_again_after_a_trim_is_charged_again(container):
    script = f"""{BEGIN}
assert from_pool(960 * MIB)[1]() == 0
lib.cuMemPoolTrimTo(pools[0], size(0))
print(from_pool(960 * MIB)[0], cuda.free_mib(), from_pool(960 * MIB)[0], flush=True)
input()
"""
    with container.start(script) as program:
        assert first_lines([program]) == [f"0 {ROOM_MIB - 960} {OUT_OF_MEMORY}"]
        assert container.machine.held_mib() <= LIMIT_MIB
        end([program])


def test_what_a_program_lets_go_of_in_its_pool_is_there_for_others(container):
    script = f"""{BEGIN}
assert from_pool(960 * MIB)[1]() == 0
lib.cuMemPoolTrimTo(pools[0], size(0))
print("trimmed", flush=True)
input()
"""
    with container.start(script) as program:
        assert first_lines([program]) == ["trimmed"]
        assert container.filled_mib(STEP_MIB) == ROOM_MIB - CONTEXT_MIB
        end([program])


def test_what_the_driver_lets_go_of_by_itself_is_given_back(container):
    script = f"{BEGIN}stream_ordered(320 * MIB)[1]()\nprint(cuda.free_mib(), lib.cuCtxSynchronize(), cuda.free_mib())"
    assert container.run(script).split() == [str(ROOM_MIB - 320), "0", str(ROOM_MIB)]


def test_threads_of_a_process_share_the_limit(container):
    script = f"""{BEGIN}
from concurrent.futures import ThreadPoolExecutor
def take(way):
    cuda.enter()
    return sum(len(fill(way, 2 * MIB)[1]) for _ in range(2))
with ThreadPoolExecutor(4) as threads:
    print(2 * sum(threads.map(take, ["alloc", "managed", "create", "array"])))
"""
    assert container.run(script) == str(ROOM_MIB)


def test_a_limit_without_room_for_a_context_refuses_it(container):
    container.limit(CONTEXT_MIB - 2)
    script = "print(cuda.init(), cuda.enter())"
    assert [container.run(script) for _ in range(2)] == [f"0 {OUT_OF_MEMORY}"] * 2, "also when it is known how much"


@pytest.mark.parametrize("lookup", ["dlsym", "address", "address_v2", "linked"])
def test_the_limit_holds_however_a_program_comes_by_the_driver(container, lookup):
    assert container.filled_mib(STEP_MIB, lookup=lookup) == ROOM_MIB


@pytest.mark.parametrize("version", ["11080", "12020", "13000"])
def test_the_limit_holds_with_older_drivers(container, version):
    assert container.filled_mib(STEP_MIB, lookup="address", TESSERA_SIM_DRIVER=version) == ROOM_MIB


@pytest.mark.parametrize("count", [2, 4])
def test_processes_that_race_get_no_more_than_the_limit_and_nearly_all_of_it(container, count):
    limit = 4_000
    container.limit(limit)
    with ExitStack() as stack:
        programs = [stack.enter_context(container.taker("race", 2)) for _ in range(count)]
        begin_race(programs)
        held = [container.machine.held_mib()]
        while len(select.select([program.stdout for program in programs], [], [], 0)[0]) < count:
            held.append(container.machine.held_mib())
        taken = [int(line) for line in first_lines(programs)]
        held.append(container.machine.held_mib())
        end(programs)
    room = limit - count * CONTEXT_MIB
    assert max(held) <= limit
    assert 0.95 * room <= sum(taken) <= room


def test_of_those_who_race_for_the_last_bytes_again_and_again_one_is_always_refused(container):
    """Two of four fit at a time, which is three fifths of the card. Where a third got in, it would be more."""
    container.limit(4 * CONTEXT_MIB + 2 * 4_000 + 2_000)
    with ExitStack() as stack:
        programs = [stack.enter_context(container.taker("contest", 4_000, "70")) for _ in range(4)]
        begin_race(programs)
        assert [program.communicate(timeout=PATIENCE_S)[0] for program in programs] == ["0\n"] * 4


def test_cuda_and_nvml_tell_one_story(container):
    script = f"""{BEGIN}
import pynvml as n
n.nvmlInit()
card = n.nvmlDeviceGetHandleByIndex(0)
assert alloc(500 * MIB)[0] == 0
old, new = n.nvmlDeviceGetMemoryInfo(card), n.nvmlDeviceGetMemoryInfo(card, version=n.nvmlMemory_v2)
print(cuda.memory_mib(0), cuda.free_mib())
print(old.total // MIB, old.free // MIB, old.used // MIB)
print(new.total // MIB, new.free // MIB, new.used // MIB)
print(cuda.memory_mib(1))
"""
    free = ROOM_MIB - 500
    nvml = f"{LIMIT_MIB} {free} {CONTEXT_MIB + 500}"
    assert container.run(script).splitlines() == [f"{LIMIT_MIB} {free}", nvml, nvml, "15360"]


def test_a_monitor_is_shown_what_the_container_holds(container):
    """It asks NVML alone, from a process without CUDA."""
    script = """
import pynvml as n
n.nvmlInit()
memory = n.nvmlDeviceGetMemoryInfo(n.nvmlDeviceGetHandleByIndex(0))
print(memory.total >> 20, memory.used >> 20, memory.free >> 20)
"""
    with container.taker("one", 1_000) as program:
        assert first_lines([program]) == ["1000"]
        assert container.run(script) == f"{LIMIT_MIB} {CONTEXT_MIB + 1_000} {ROOM_MIB - 1_000}"
        end([program])


def test_what_others_hold_of_a_full_card_is_not_shown_as_free(container, holding):
    holding(14_000)
    assert container.run(f"{BEGIN}print(cuda.free_mib())") == str(15_360 - 14_000 - 2 * CONTEXT_MIB)


def test_without_a_limit_the_card_is_all_there(container):
    container.limit(0)
    assert container.run(f"{BEGIN}print(cuda.memory_mib(0), alloc(15_000 * MIB)[0])") == "15360 0"
