"""The file that the processes of a container share is right whoever dies in whichever moment, and hangs nobody."""

import os
import platform
import signal
import sys
import time
from contextlib import ExitStack

import pytest

from tessera.vendors.loading import load_catalogue
from tessera.vendors.simulated import parse_plan, simulate
from tessera.vendors.simulated_driver import write_cards
from tests.native.machines import (
    CONTEXT_MIB,
    LIBRARIES,
    MIB,
    PATIENCE_S,
    TAKER,
    end,
    first_lines,
    region_at,
    require_namespaces,
)
from tests.unit.node.making_regions import hold_byte

LIMIT_MIB = 2_000
ROOM_MIB = LIMIT_MIB - CONTEXT_MIB
OUT_OF_MEMORY = 2
SLOTS_USED = 8
"""Where it is in the region, by native/lib/region_file.h."""
GUESSED_CONTEXT_MIB, BLIND_MARGIN_MIB = 520, 128
"""What a process is charged with where nothing can be measured."""


@pytest.fixture
def container(container):
    container.limit(LIMIT_MIB)
    return container


def test_processes_of_a_container_share_its_limit_and_see_what_all_hold(container):
    with container.taker("one", 1_000) as program:
        assert first_lines([program]) == ["1000"]
        left = ROOM_MIB - CONTEXT_MIB - 1_000
        assert container.run("print(alloc(2), cuda.free_mib())") == f"0 {left - 2}"
        assert container.filled_mib(10) == left
        end([program])
    assert container.filled_mib(10) == ROOM_MIB


def test_a_number_of_slots_that_cannot_be_ends_no_program(container):
    with container.start("print(alloc(2), flush=True)\ninput()\nprint(alloc(2), cuda.free_mib())") as program:
        assert first_lines([program]) == ["0"]
        with (container.directory / "region").open("r+b") as file:
            file.seek(SLOTS_USED)
            file.write(b"\xff" * 4)
        assert program.communicate("\n", timeout=PATIENCE_S)[0] == f"0 {ROOM_MIB - 4}\n"


def test_whoever_is_killed_while_allocating_gives_everything_back(container):
    """At thirty moments, a fraction of a millisecond apart."""
    for moment in range(30):
        with container.taker("churn", 100) as program:
            while container.machine.held_mib() <= CONTEXT_MIB:
                assert program.poll() is None
            time.sleep(moment * 0.000_3)
            program.kill()
        assert container.filled_mib(50) == ROOM_MIB


def test_whoever_is_killed_while_starting_leaves_the_next_one_unharmed(container):
    """From before it has loaded anything until after it has allocated, with a file of its own and with a shared one."""
    for moment in range(60):
        with container.taker("churn", 100) as program:
            time.sleep(moment * 0.000_2)
            program.kill()
        assert container.filled_mib(50) == ROOM_MIB
        if moment % 2:
            (container.directory / "region").unlink(missing_ok=True)


def test_a_zombie_holds_nothing(container):
    """In a container nobody may ever wait for it."""
    with container.taker("one", 1_000) as program:
        assert first_lines([program]) == ["1000"]
        os.kill(program.pid, signal.SIGKILL)
        os.waitid(os.P_PID, program.pid, os.WEXITED | os.WNOWAIT)
        assert container.filled_mib(50) == ROOM_MIB


def test_a_process_that_is_stopped_keeps_what_it_holds_and_hinders_nobody(container):
    with container.taker("one", 1_000) as program:
        assert first_lines([program]) == ["1000"]
        program.send_signal(signal.SIGSTOP)
        assert container.filled_mib(50) == ROOM_MIB - CONTEXT_MIB - 1_000
        end([program])


def test_a_forked_child_has_nothing_of_its_parent_and_shares_its_limit(container):
    script = """
import os
assert alloc(1_000) == 0
child = os.fork()
if child == 0:
    print(cuda.init() or cuda.enter() or cuda.take(400 * MIB)[0], cuda.take(2 * MIB)[0], cuda.free_mib(), flush=True)
    os._exit(0)
os.waitpid(child, 0)
print(cuda.take(600 * MIB)[0], cuda.free_mib())
"""
    assert container.run(script).split() == ["0", str(OUT_OF_MEMORY), "0", "0", "100"]


def test_a_program_that_replaces_itself_starts_with_the_whole_limit(container):
    script = f"""
import os
assert alloc(1_000) == 0
os.set_inheritable(0, True)
os.execv({str(TAKER)!r}, ["taker", "dlsym", "fill", "50"])
"""
    assert container.run(script) == str(ROOM_MIB)


def test_a_program_that_was_replaced_by_one_without_cuda_holds_nothing(container):
    replaced = "import os\nassert alloc(1_000) == 0\nos.execv('/bin/sh', ['sh', '-c', 'echo replaced; read line'])"
    with container.start(replaced) as program:
        assert first_lines([program]) == ["replaced"]
        assert container.filled_mib(50) == ROOM_MIB
        end([program])


def test_a_forked_child_that_outlives_its_parent_does_not_keep_its_part(container):
    outlive = "import os\nassert alloc(1_000) == 0\nif os.fork() == 0: print(input(), flush=True)\nos._exit(0)"
    with container.start(outlive) as parent:
        parent.wait(PATIENCE_S)
        assert container.filled_mib(50) == ROOM_MIB
        assert parent.communicate("the child lived\n", timeout=PATIENCE_S)[0] == "the child lived\n"


def test_a_child_that_came_about_without_the_c_library_keeps_what_its_parent_had(container):
    """It has the card open as its parent had, so the memory is taken until it ends, too."""
    clone = {"x86_64": 56, "aarch64": 220}[platform.machine()]
    script = f"""
import os, signal
assert alloc(1_000) == 0
if ctypes.CDLL(None).syscall({clone}, signal.SIGCHLD, 0, 0, 0, 0) == 0:
    print("child", flush=True)
    input()
    os._exit(0)
signal.pause()
"""
    with container.start(script) as program:
        assert first_lines([program]) == ["child"]
        program.kill()
        program.wait(PATIENCE_S)
        assert container.filled_mib(50) == ROOM_MIB - CONTEXT_MIB - 1_000
        program.communicate("\n", timeout=PATIENCE_S)
    assert container.filled_mib(50) == ROOM_MIB


IN_A_NAMESPACE = ("unshare", "--pid", "--fork", "--mount-proc", sys.executable, "-c")
"""Its processes start with number 1, as in a container."""


def test_a_number_that_comes_again_is_another_process(container):
    """Whoever has it now holds its own, and nothing of what somebody of that number did."""
    require_namespaces()
    reuse = f"""
import subprocess, time
def take(mib):
    program = subprocess.Popen(["{TAKER}", "dlsym", "one", str(mib)], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert program.stdout.readline() == b"%d\\n" % mib
    return program
first = take(1_000)
first.kill()
first.wait()
time.sleep(0.03)  # the kernel's clock for starts goes by hundredths of a second
open("/proc/sys/kernel/ns_last_pid", "w").write(str(first.pid - 1))
second = take(100)
print(first.pid == second.pid, flush=True)
subprocess.run(["{TAKER}", "dlsym", "fill", "50"], stdin=subprocess.DEVNULL)
second.kill()
"""
    with container.machine.execute([*IN_A_NAMESPACE, reuse], **container.environment) as program:
        said = program.communicate(timeout=PATIENCE_S)[0].split()
    assert said == ["True", str(ROOM_MIB - CONTEXT_MIB - 100)]


def test_the_dead_of_other_namespaces_are_buried_and_the_living_counted(container):
    require_namespaces()
    hold = "from tests.native.looking import *; print(alloc(1_000), flush=True); input()"
    with container.machine.execute([*IN_A_NAMESPACE, hold], **container.environment) as program:
        assert first_lines([program]) == ["0"]
        assert container.filled_mib(50) == ROOM_MIB - CONTEXT_MIB - 1_000
        program.communicate("\n", timeout=PATIENCE_S)
    assert container.filled_mib(50) == ROOM_MIB


def test_a_program_that_closes_what_it_does_not_know_stays_counted_and_keeps_its_own_files(container):
    script = """
import os
assert alloc(1_000) == 0
files = {os.path.realpath(f"/proc/self/fd/{fd}"): int(fd) for fd in os.listdir("/proc/self/fd")}
number = next(fd for path, fd in files.items() if path.endswith("region"))
os.close(number)
own = os.open("/dev/null", os.O_RDONLY)
assert own == number
child = os.fork()
if child == 0:
    os.fstat(own)
    print("kept", flush=True)
    os._exit(0)
os.waitpid(child, 0)
print(cuda.take(800 * MIB)[0], cuda.take(100 * MIB)[0], flush=True)
input()
"""
    with container.start(script) as program:
        assert first_lines([program, program]) == ["kept", f"{OUT_OF_MEMORY} 0"]
        assert container.filled_mib(50) == ROOM_MIB - CONTEXT_MIB - 1_100
        end([program])


def test_a_program_that_closes_what_it_does_not_know_shares_what_the_dead_leave_and_cards_that_are_new(container):
    container.limit(2_000, 1_000)
    script = """
import os
assert alloc(10) == 0
os.closerange(3, 1000)
print("closed", flush=True)
input()
print(cuda.take(1_300 * MIB)[0], cuda.enter(1), cuda.take(600 * MIB)[0], flush=True)
input()
"""
    with container.taker("one", 1_000) as holder:
        assert first_lines([holder]) == ["1000"]
        with container.start(script) as program:
            assert first_lines([program]) == ["closed"]
            end([holder])
            print(file=program.stdin, flush=True)
            assert first_lines([program]) == ["0 0 0"]
            assert container.run("cuda.init(); cuda.enter(1); print(cuda.take(200 * MIB)[0])") != "0"
            end([program])


def test_who_is_refused_for_what_the_living_hold_waits_for_nobody(container):
    """Not even for one that was stopped with the lock."""
    script = """
assert alloc(10) == 0
print("there", flush=True)
input()
print([(cuda.take(3_000 * MIB)[0], cuda.free_mib() > 0) for _ in range(5)], flush=True)
"""
    with container.start(script) as program, container.taker("one", 100) as other:
        assert first_lines([program, other]) == ["there", "100"]
        descriptor = hold_byte(container.directory / "region", 0)
        said, _ = program.communicate("\n", timeout=9)
        os.close(descriptor)
        end([other])
    assert said.strip() == str([(OUT_OF_MEMORY, True)] * 5)


def test_what_fits_is_granted_whoever_is_refused_at_the_same_moment(container):
    """Two ask for too much without end, beside one after the other whose small requests fit."""
    container.limit(12_000)
    with ExitStack() as stack:
        greedy = [stack.enter_context(container.taker("churn", 11_900)) for _ in range(2)]
        stack.callback(end, greedy)
        while container.machine.held_mib() < len(greedy) * CONTEXT_MIB:
            assert [program.poll() for program in greedy] == [None, None]
        for _ in range(100):
            with container.taker("lap", 2) as modest:
                said, _ = modest.communicate(timeout=PATIENCE_S)
            assert said.strip().isdigit(), said


def test_two_hundred_processes_at_once_all_get_their_part(container):
    machine = container.machine
    write_cards(machine.directory, simulate("here", parse_plan("4xT4"), load_catalogue()).devices, context_mib=2)
    container.limit(1_000)
    with ExitStack() as stack:
        programs = [stack.enter_context(container.taker("one", 2)) for _ in range(200)]
        assert first_lines(programs) == ["2"] * 200
        assert machine.held_mib() == 200 * (2 + 2)
        assert container.run("cuda.init(); cuda.enter(); print(cuda.free_mib())") == str(1_000 - 800 - 2)
        for program in programs:
            program.kill()
    assert container.filled_mib(2) == 998


def test_a_thousand_processes_at_once_all_have_their_slot(container, tmp_path):
    """Without NVML, which would have each of them count twice on the simulated machine."""
    machine = container.machine
    write_cards(machine.directory, simulate("here", parse_plan("1xT4"), load_catalogue()).devices, context_mib=2)
    container.limit(1_000_000)
    (tmp_path / "alone").mkdir()
    (tmp_path / "alone/libcuda.so.1").symlink_to(LIBRARIES / "libcuda.so.1")
    crowd = f"""
import subprocess
command = ["{TAKER}", "dlsym", "one", "2"]
programs = [subprocess.Popen(command, stdin=0, stdout=1, stderr=1) for _ in range(1_000)]
for program in programs: program.wait()
"""
    environment = container.environment | {"LD_LIBRARY_PATH": str(tmp_path / "alone")}
    with machine.execute([sys.executable, "-c", crowd], **environment) as program:
        assert first_lines([program] * 1_000) == ["2"] * 1_000
        assert machine.held_mib() == 1_000 * (2 + 2)
        region = region_at(container.directory / "region")
        program.communicate(timeout=PATIENCE_S)
    assert len({process.pid for process in region.processes}) == 1_000
    assert region.cards[0].used_bytes == 1_000 * (2 + GUESSED_CONTEXT_MIB + BLIND_MARGIN_MIB) * MIB


def test_a_file_that_is_no_region_is_said_and_the_limit_holds_for_each_process(container):
    (container.directory / "region").write_bytes(b"something else" * 20_000)
    with container.taker("fill", 50) as program:
        said = program.communicate(timeout=PATIENCE_S)[0].splitlines()
    assert said[-1] == str(ROOM_MIB)
    assert "cannot be shared: it is no region of this version" in said[0]


def test_a_place_that_cannot_be_written_is_said_and_the_limit_holds_for_each_process(container):
    with container.taker("fill", 50, TESSERA_REGION="/proc/none/region") as program:
        said = program.communicate(timeout=PATIENCE_S)[0].splitlines()
    assert said[-1] == str(ROOM_MIB)
    assert said[0].startswith("tessera: /proc/none/region cannot be shared")


def test_without_a_place_of_our_own_the_one_of_hami_is_used(container):
    cache = container.directory / "uid_main.cache"
    environment = container.environment | {"CUDA_DEVICE_MEMORY_SHARED_CACHE": str(cache)}
    del environment["TESSERA_REGION"]
    with container.machine.execute([str(TAKER), "dlsym", "fill", "50"], **environment) as program:
        assert program.communicate(timeout=PATIENCE_S)[0] == f"{ROOM_MIB}\n"
    assert not cache.exists(), "its own format is not ours"
    assert cache.with_name("uid_main.cache.tessera-3").exists()
