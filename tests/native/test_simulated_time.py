"""Simulated cards take time: kernels follow each other, processes take turns, and nobody is harmed by a death.

Times are those of events, which are exact however late a program wakes up.
"""

import json
import random
import struct
import subprocess
from contextlib import ExitStack, suppress

import pytest

from tests.native.machines import PATIENCE_S, PROBES

COMPUTE = "from tests.native.computing import *\nbegin()\n"
TIMED = f"{COMPUTE}print(timed_ms(20, 1))"
LOCK_OF_A_SLOT = 900
TURN_MS, CHANGE_MS = 2.0, 0.18


@pytest.fixture
def neighbour(machine):
    """A process with more work than it can do."""
    with ExitStack() as stack:
        worker = machine.worker(PATIENCE_S, 1_000_000, 500)
        stack.callback(worker.communicate)
        stack.callback(worker.kill)
        machine.run(f"{COMPUTE}wait_for_neighbour()")
        yield worker


def test_kernels_of_one_process_follow_each_other_without_a_gap(machine):
    assert float(machine.run(TIMED)) == pytest.approx(20, abs=0.001)


@pytest.mark.usefixtures("neighbour")
def test_processes_take_turns_and_each_change_costs_time(machine):
    """Ten turns of its own, and between them those of the other and two changes."""
    between = 10 * (TURN_MS + 2 * CHANGE_MS)
    assert float(machine.run(TIMED)) == pytest.approx(20 + between, abs=TURN_MS + 2 * CHANGE_MS)


@pytest.mark.usefixtures("neighbour")
def test_another_card_has_a_time_of_its_own(machine):
    assert float(machine.run(f"{COMPUTE.replace('begin()', 'begin(1)')}print(timed_ms(20, 1))")) == pytest.approx(20)


def test_the_work_of_the_dead_is_not_done(machine, neighbour):
    with machine.start(f"{COMPUTE}print('ready', flush=True)\ninput()\nprint(timed_ms(20, 1))") as program:
        assert program.stdout.readline() == "ready\n"
        neighbour.kill()
        neighbour.wait()
        said, _ = program.communicate("\n", timeout=PATIENCE_S)
    assert float(said) == pytest.approx(20, abs=0.001)


def test_whoever_dies_while_it_works_out_the_time_stops_nobody(machine):
    machine.run(TIMED)
    with (machine.directory / "time").open("r+b") as file:
        file.write(struct.pack("=I", LOCK_OF_A_SLOT + 1))
    assert float(machine.run(TIMED)) == pytest.approx(20, abs=0.001)


def test_those_who_are_killed_anywhere_leave_a_card_that_works(machine):
    chance = random.Random(8)
    with machine.worker(PATIENCE_S, 100_000, 50) as steady:
        for mode in ("kernel", "graph", "streams2", "copy") * 10:
            with machine.worker(PATIENCE_S, chance.choice([2_000, 3_000_000]), 100, mode) as killed:
                with suppress(subprocess.TimeoutExpired):
                    killed.wait(chance.random() / 30)
                killed.kill()
        assert steady.poll() is None
        steady.kill()
    assert float(machine.run(TIMED)) == pytest.approx(20, abs=0.001)


def test_time_that_passes_on_the_card_burns_none_of_the_machine(machine):
    script = f"{COMPUTE}import time\nspin, on = kernel(b'spin'), stream()\nlaunch(spin, on, 1000 * MS)\n"
    script += "driver.cuStreamSynchronize(on)\nbefore = time.process_time()\nlaunch(spin, on, 1000 * MS)\n"
    script += "driver.cuStreamSynchronize(on)\nprint(time.process_time() - before)"
    assert float(machine.run(script)) < 0.2


def test_a_second_launch_does_not_wait_for_the_first(machine):
    """A kernel of an hour would be noticed."""
    script = f"{COMPUTE}import os\nspin, on = kernel(b'spin'), stream()\n"
    script += "print([launch(spin, on, 3_600_000 * MS) for _ in range(3)], driver.cuStreamQuery(on), flush=True)\n"
    script += "os._exit(0)"
    assert machine.run(script) == "[0, 0, 0] 600"


@pytest.mark.parametrize("mode", ["kernel", "ex", "coop", "graph", "streams2", "copy", "sync"])
def test_a_worker_tells_what_it_got(machine, mode):
    with machine.worker(0.3, 1_000_000, 4, mode) as worker:
        said, _ = worker.communicate(timeout=PATIENCE_S)
    found = json.loads(said)
    assert found["steps"] == sum(found["windows"]) > 0
    assert found["gpu_ns"] == found["launches"] * 1_000_000 <= found["wall_ns"]
    assert found["launches"] == found["steps"] * {"graph": 4, "copy": 0}.get(mode, 1)


FORK = f"""{COMPUTE}
import ctypes, os
called = ctypes.CFUNCTYPE(None, ctypes.c_void_p)(lambda _: print("called", flush=True))
spin, on = kernel(b"spin"), stream()
launch(spin, on, 3_600_000 * MS)
driver.cuLaunchHostFunc(on, called, None)
if os.fork() == 0:
    begin()
    mine = stream()
    print(driver.cuLaunchHostFunc(mine, called, None), driver.cuStreamSynchronize(mine), flush=True)
    os._exit(0)
os.wait()
os._exit(0)
"""


def test_a_forked_child_has_streams_of_its_own(machine):
    """And a thread of its own that calls its functions."""
    assert machine.run(FORK).splitlines() == ["called", "0 0"]


def test_a_launch_through_a_driver_that_does_nothing_can_be_timed(machine):
    command = [str(PROBES / "launches"), "2", "1000"]
    with machine.execute(command, LD_LIBRARY_PATH=str(PROBES / "stub")) as program:
        said, _ = program.communicate(timeout=PATIENCE_S)
    assert float(said) > 0
