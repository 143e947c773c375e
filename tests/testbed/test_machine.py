"""A machine is a world of its own, and nothing of it is left when it is gone, however it goes."""

import os
import select
import signal
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from testbed import init
from testbed.fixtures import require_testbed
from testbed.machine import Machine
from testbed.network import Addresses
from testbed.requirements import TestbedFailed

ROOT = Path(__file__).resolve().parents[2]
HOLDER = """
import sys
from testbed.machine import Machine
machine = Machine()
sleeper = machine.start("sleeper", ["sh", "-c", "setsid sleep 600 & sleep 600"])
print(machine.addresses.slot, sleeper.pid, flush=True)
sys.stdin.read()
"""
CONNECT = "import socket, sys; socket.create_connection((sys.argv[1], int(sys.argv[2])), timeout=2)"


@pytest.fixture(autouse=True)
def _testbed():
    require_testbed()


@pytest.fixture
def machine():
    machine = Machine()
    yield machine
    machine.stop()


def traces_of(slot: int) -> list[str]:
    """What of a machine can still be seen from the host."""
    links = subprocess.run(["ip", "-o", "link"], capture_output=True, text=True, check=True).stdout
    groups = [str(path / f"tessera-testbed-{slot}") for path in init.hierarchies()]
    mounts = Path("/proc/mounts").read_text().splitlines()
    return [
        *(line for line in links.splitlines() if f" {Addresses(slot).link}@" in line),
        *(group for group in groups if Path(group).exists()),
        *(line for line in mounts if f"tessera-testbed-{slot}/" in line),
    ]


def test_a_machine_that_stops_leaves_no_process_link_mount_control_group_or_file():
    machine = Machine()
    sleeper = machine.start("sleeper", ["sh", "-c", "setsid sleep 600 & sleep 600"])
    machine.run("mount", "-t", "tmpfs", "none", "/run/lock")
    machine.run("sh", "-c", "mkdir -p $0/deep/down", init.hierarchies()[0] / machine.cgroup)
    pid, slot = sleeper.pid, machine.addresses.slot
    assert traces_of(slot)
    machine.stop()
    assert not traces_of(slot)
    assert not Path(f"/proc/{pid}").exists()
    assert not machine.directory.exists()


def test_a_machine_whose_holder_is_killed_goes_with_it():
    holder = subprocess.Popen(
        [sys.executable, "-c", HOLDER], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=ROOT
    )
    assert holder.stdout
    slot, pid = map(int, holder.stdout.readline().split())
    pidfd = os.pidfd_open(pid)
    holder.send_signal(signal.SIGKILL)
    holder.communicate()
    assert wait_for_end(pidfd), "the program of a machine outlived the machine's holder"
    successor = Machine()  # the first free slot: whoever gets it clears what the last holder left
    try:
        assert successor.addresses.slot <= slot
    finally:
        successor.stop()
    assert not traces_of(slot)


def wait_for_end(pidfd: int) -> bool:
    """A process's descriptor becomes readable when the process ends."""
    try:
        return bool(select.select([pidfd], [], [], 20)[0])
    finally:
        os.close(pidfd)


def test_two_machines_do_not_see_each_other(machine):
    other = Machine()
    try:
        (machine.host_path("/var/lib") / "mine").touch()
        assert machine.run("ls", "/var/lib").split() == ["mine"]
        assert other.run("ls", "/var/lib").split() == []
        assert other.addresses.machine != machine.addresses.machine
        assert machine.run("sh", "-c", "ls /proc | grep -c '^[0-9]'").strip() <= "4"
    finally:
        other.stop()


def test_whoever_keeps_their_programs_elsewhere_gets_another_machine_all_the_same(machine, monkeypatch, tmp_path):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    other = Machine()
    try:
        assert other.addresses.slot != machine.addresses.slot
        assert machine.run("hostname") == "node-1\n"
    finally:
        other.stop()


def test_a_machine_reaches_the_host_and_nothing_else(machine):
    with socket.create_server((machine.addresses.host, 0)) as server:
        machine.run(sys.executable, "-c", CONNECT, machine.addresses.host, str(server.getsockname()[1]))
    with pytest.raises(TestbedFailed, match=r"timed out|unreachable|refused"):
        machine.run(sys.executable, "-c", CONNECT, "192.0.2.1", "80")


def test_a_program_can_be_paused_killed_and_started_again(machine):
    program = machine.start("counter", ["sh", "-c", "echo begun; exec sleep 600"])
    program.until(lambda: "begun" in program.log.read_text(), "started")
    program.pause()
    program.resume()
    program.pause()
    program.kill()
    assert not program.running
    program.restart()
    program.until(lambda: program.log.read_text().count("begun") == 2, "started again")


def test_a_machine_stops_while_a_program_is_paused():
    machine = Machine()
    machine.start("sleeper", ["sleep", "600"]).pause()
    machine.stop()
    assert not traces_of(machine.addresses.slot)


def test_a_program_that_dies_early_is_reported_with_its_last_words(machine):
    program = machine.start("quitter", ["sh", "-c", "echo no such luck; exit 1"])
    with pytest.raises(TestbedFailed, match=r"quitter ended before it was ready; its log ends:\nno such luck"):
        program.until(lambda: False, "ready")


def test_a_command_that_fails_is_told_with_what_it_said(machine):
    with pytest.raises(TestbedFailed, match=r"`ls /nowhere` failed: .*nowhere"):
        machine.run("ls", "/nowhere")
