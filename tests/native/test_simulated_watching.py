"""What the node's agent reads of simulated cards is what their own NVML says: both know one layout."""

import asyncio
import os
from contextlib import suppress
from pathlib import Path

import pytest

from tessera.errors import DiscoveryFailed
from tessera.vendors.simulated_watching import SimulatedWatch
from tessera.vendors.usage import CardUsage, Fault
from tests.contract.waiting import eventually
from tests.native.machines import CONTEXT_MIB, MIB, Machine, end, first_lines, require_namespaces

ASK_NVML = """
from tessera.vendors.nvml_watching import NvmlWatch
watch = NvmlWatch()
print(sorted(watch.usage().items()), sorted(watch.processes().items()))
"""
SPIN = """
from tests.native.computing import *
begin()
launch(kernel(b"spin"), stream(), 600_000 * MS)
print("under way", flush=True)
input()
"""
NOTHING = CardUsage(memory_used_mib=0, busy_percent=0)


@pytest.fixture
def watch(machine: Machine) -> SimulatedWatch:
    return SimulatedWatch(machine.directory)


def test_memory_and_processes_are_as_nvml_has_them(machine, watch, holding):
    holding(1_000)
    holding(2_000)
    said = f"{sorted(watch.usage().items())} {sorted(watch.processes().items())}"
    assert said == machine.run(ASK_NVML)
    assert watch.usage()[machine.uuids[0]].memory_used_mib == 3_000 + 2 * CONTEXT_MIB
    assert watch.usage()[machine.uuids[1]] == NOTHING


def test_the_dead_have_nothing(machine, watch, holding):
    holder = holding(1_000)
    assert [one.pid for one in watch.processes()[machine.uuids[0]]] == [holder.pid]
    holder.kill()
    holder.wait()
    assert watch.processes()[machine.uuids[0]] == ()
    assert watch.usage()[machine.uuids[0]] == NOTHING


def test_a_process_in_a_namespace_of_its_own_is_known_by_its_number_here(machine, watch):
    require_namespaces()
    hold = "print(alloc(100), flush=True); input()"
    command = ["unshare", "--pid", "--fork", "--kill-child", "--mount-proc", *machine.python(hold)]
    with machine.execute(command) as outer:
        assert first_lines([outer]) == ["0"]
        (listed,) = watch.processes()[machine.uuids[0]]
        with open(f"/proc/{listed.pid}/status") as status:
            numbers = next(line.split()[1:] for line in status if line.startswith("NSpid:"))
        assert numbers[-1] == "1" != numbers[0]
        assert numbers[0] == str(listed.pid)
        assert listed.memory_bytes == (100 + CONTEXT_MIB) * MIB
        end([outer])


def test_a_child_has_a_place_of_its_own_and_its_parent_keeps_its_own(machine, watch):
    script = """
print(alloc(100), flush=True)
import os
if os.fork() == 0:
    print(Cuda().init(), alloc(200), os.getpid(), flush=True)
    input()
    os._exit(0)
os.wait()
"""
    with machine.start(script) as parent:
        assert first_lines([parent]) == ["0"]
        child = int(first_lines([parent])[0].split()[-1])
        listed = {one.pid: one.memory_bytes // MIB for one in watch.processes()[machine.uuids[0]]}
        assert listed == {parent.pid: 100 + CONTEXT_MIB, child: 200 + CONTEXT_MIB}
        parent.communicate("\n")


def test_a_card_is_as_busy_as_nvml_says(machine, watch):
    def busy() -> int:
        return watch.usage()[machine.uuids[0]].busy_percent

    with machine.worker(30, 1_000_000) as worker:
        eventually(lambda: busy() > 80)
        end([worker])
    eventually(lambda: busy() == 0)


def test_work_that_nobody_has_looked_at_since_counts_as_being_done(machine, watch, holding):
    holding(1)
    with machine.start(SPIN, CUDA_VISIBLE_DEVICES="1") as program:
        assert first_lines([program]) == ["under way"]
        eventually(lambda: watch.usage()[machine.uuids[1]].busy_percent == 100)
        assert watch.usage()[machine.uuids[0]].busy_percent == 0
        end([program])


def test_faults_are_told_once_and_those_of_before_never(machine, watch):
    one, other = machine.uuids[:2]
    path = machine.directory / "faults"
    path.write_text(f"{one} 31\n")

    async def hear() -> list[list[Fault]]:
        heard = [await watch.upcoming_faults()]
        with path.open("a") as faults:
            faults.write(f"{one} 79\nno fault\n{other} 48\n{other} 1")
        heard.append(await watch.upcoming_faults())
        with path.open("a") as faults:
            faults.write("3\n")
        return [*heard, await watch.upcoming_faults(), await watch.upcoming_faults()]

    assert asyncio.run(hear()) == [[], [Fault(one, 79), Fault(other, 48)], [Fault(other, 13)], []]


def test_where_there_are_no_cards_yet_nothing_is_told(tmp_path):
    watch = SimulatedWatch(tmp_path / "nowhere")
    assert (watch.usage(), watch.processes()) == ({}, {})
    assert asyncio.run(watch.upcoming_faults()) == []


def test_who_has_closed_all_that_it_had_open_is_counted_and_not_listed_by_a_number_that_may_be_anybodys(machine, watch):
    script = "print(alloc(100), flush=True)\nimport os; os.closerange(3, 1000); print('closed', flush=True); input()"
    with machine.start(script) as program:
        assert first_lines([program]) == ["0"]
        assert first_lines([program]) == ["closed"]
        assert watch.processes()[machine.uuids[0]] == ()
        assert watch.usage()[machine.uuids[0]].memory_used_mib == 100 + CONTEXT_MIB
        end([program])


def test_the_work_of_the_dead_is_not_done(machine, watch):
    with machine.start(SPIN) as program:
        assert first_lines([program]) == ["under way"]
        end([program])
    assert watch.usage()[machine.uuids[0]].busy_percent < 100
    eventually(lambda: watch.usage()[machine.uuids[0]] == NOTHING, timeout_s=5)


def in_the_way(path: Path, what: str) -> None:
    path.unlink()
    match what:
        case "directory":
            path.mkdir()
        case "pipe":
            os.mkfifo(path)
        case "loop":
            path.symlink_to(path)
        case _:
            path.write_bytes(b"\xff\0\x85" * 1_000_000)


@pytest.mark.parametrize("what", ["directory", "pipe", "loop", "garbage"])
@pytest.mark.parametrize("name", ["cards", "memory", "processes", "time", "faults"])
def test_whatever_lies_in_the_place_of_a_file_nobody_waits_and_nothing_else_is_raised(machine, watch, name, what):
    in_the_way(machine.directory / name, what)

    async def ask() -> None:
        for question in (watch.usage, watch.processes):
            with suppress(DiscoveryFailed):
                assert all(0 <= (one.busy_percent or 0) <= 100 for one in watch.usage().values())
                question()
        with suppress(DiscoveryFailed):
            assert await watch.upcoming_faults() == []

    asyncio.run(asyncio.wait_for(ask(), 10))


@pytest.mark.parametrize("text", [f"{{card}} {'9' * 5000}\n", "GPU-nobody 79\n" * 100, "x" * 10_000, "{card} -1\n"])
def test_lines_that_tell_of_no_fault_of_a_card_are_passed_over_and_later_ones_are_heard(machine, watch, text):
    card, path = machine.uuids[0], machine.directory / "faults"

    async def hear() -> list[Fault]:
        await watch.upcoming_faults()
        with path.open("a") as faults:
            faults.write(text.replace("{card}", card) + f"\n{card} 79\n")
        return [fault for _ in range(5) for fault in await watch.upcoming_faults()]

    assert asyncio.run(hear()) == [Fault(card, 79)]


def test_a_file_of_faults_that_somebody_began_anew_is_heard_from_its_beginning(machine, watch):
    card, path = machine.uuids[0], machine.directory / "faults"
    path.write_text(f"{card} 31\n{card} 31\n")

    async def hear() -> list[Fault]:
        await watch.upcoming_faults()
        path.write_text(f"{card} 79\n")
        return await watch.upcoming_faults()

    assert asyncio.run(hear()) == [Fault(card, 79)]
