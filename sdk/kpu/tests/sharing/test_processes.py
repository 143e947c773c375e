"""Two processes, one of which is killed: the other lives on, its tensors too, and no memory is left behind."""

import gc
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from kpu.sharing import link as links
from kpu.sharing.door import open_door
from kpu.sharing.greeting import Invitation
from kpu.sharing.knocking import visit
from kpu.sharing.link import Link

MIB = 1 << 20


class Peer:
    def __init__(self) -> None:
        program = Path(__file__).with_name("peer_process.py")
        self.process = subprocess.Popen(
            [sys.executable, str(program)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )

    def ask(self, command: str) -> str:
        self.tell(command)
        assert self.process.stdout
        return self.process.stdout.readline().strip()

    def tell(self, command: str) -> None:
        assert self.process.stdin
        print(command, file=self.process.stdin, flush=True)

    @property
    def stands_still(self) -> bool:
        """Whether every thread has stopped: a signal takes a moment to reach them all."""
        tasks = Path(f"/proc/{self.process.pid}/task").iterdir()
        return all((task / "stat").read_text().rpartition(")")[2].split()[0] == "T" for task in tasks)

    def kill(self) -> None:
        self.process.kill()
        self.process.wait()

    def end(self) -> None:
        self.kill()
        for pipe in (self.process.stdin, self.process.stdout):
            assert pipe
            pipe.close()


@pytest.fixture
def peer() -> Iterator[Peer]:
    peer = Peer()
    yield peer
    peer.end()


@pytest.fixture(params=["server", "client"])
def link(peer: Peer, request) -> Iterator[Link]:
    """Our end of a link to the peer, which is once the server and once the client."""
    if request.param == "server":
        guest = visit(Invitation(*peer.ask("serve").split()))
        assert guest
        yield guest.link
        guest.close()
        return
    door = open_door()
    assert door
    invitation = door.invite()
    assert peer.ask(f"visit {invitation.address} {invitation.nonce}") == "here"
    link = door.link(invitation.nonce)
    assert link
    yield link
    door.close()


def _regions_of(pid: int | str) -> set[int]:
    """Inodes of the regions that a process maps or holds open."""
    try:
        lines = Path(f"/proc/{pid}/maps").read_text().splitlines()
        found = {int(line.split()[4]) for line in lines if "memfd:kpu-tensor" in line}
        for number in os.listdir(f"/proc/{pid}/fd"):
            path = Path(f"/proc/{pid}/fd/{number}")
            if "memfd:kpu-tensor" in os.readlink(path):
                found.add(path.stat().st_ino)
    except (FileNotFoundError, ProcessLookupError, PermissionError):
        return set()
    return found


def _in_any_process(inodes: set[int]) -> set[int]:
    pids = [name for name in os.listdir("/proc") if name.isdigit()]
    return set().union(*map(_regions_of, pids)) & inodes


def test_bytes_cross_between_processes_both_ways(peer, link):
    region, _ = peer.ask("lend 2 7").split()
    view = link.borrow(int(region), 0, 2 * MIB)
    assert view.min() == view.max() == 7
    handover = link.lend(np.full(3 * MIB, 9, np.uint8))
    assert handover
    assert peer.ask(f"borrow {handover.region} 3") == "9 9"


def test_what_a_killed_process_had_lent_stays_with_who_views_it_and_then_goes(peer, link, eventually):
    views = [link.borrow(int(peer.ask(f"{how} 4 5").split()[0]), 0, 4 * MIB) for how in ("lend", "show")]
    inodes = _regions_of(peer.process.pid)
    assert len(inodes) == 2
    peer.kill()
    eventually(lambda: not link.open)
    assert [(view.min(), view.max()) for view in views] == [(5, 5), (5, 5)]
    views[0][:] = 6
    views.clear()
    gc.collect()
    eventually(lambda: not _in_any_process(inodes))


def test_what_was_lent_to_a_killed_process_is_gone(peer, link, eventually):
    handover = link.lend(np.full(4 * MIB, 3, np.uint8))
    assert handover
    assert peer.ask(f"borrow {handover.region} 4") == "3 3"
    inodes = _regions_of(peer.process.pid)
    assert len(inodes) == 1
    peer.kill()
    eventually(lambda: not link.open)
    assert link.lend(np.ones(MIB, np.uint8)) is None
    eventually(lambda: not _in_any_process(inodes))


def test_a_process_killed_before_it_took_an_offer_leaves_nothing(peer, link, eventually, monkeypatch):
    monkeypatch.setattr(links, "ANSWER_SECONDS", 0.2)
    before = _regions_of(os.getpid())
    peer.process.send_signal(signal.SIGSTOP)
    eventually(lambda: peer.stands_still)
    assert link.lend(np.ones(4 * MIB, np.uint8)) is None
    inodes = _regions_of(os.getpid()) - before
    peer.kill()
    eventually(lambda: not link.open)
    eventually(lambda: not _in_any_process(inodes))


@pytest.mark.parametrize("delay", [0.0, 0.003, 0.02, 0.05])
def test_a_process_killed_while_it_lends_leaves_nothing(peer, link, eventually, delay):
    peer.tell("lend_until_killed 16")
    eventually(lambda: len(_regions_of(peer.process.pid)) >= 1)
    _pass_time(delay)
    inodes = _regions_of(peer.process.pid) | _regions_of(os.getpid())
    peer.kill()
    eventually(lambda: not link.open)
    gc.collect()
    eventually(lambda: not _in_any_process(inodes))


def test_a_client_comes_back_to_a_server_after_it_was_killed():
    first, second = Peer(), Peer()
    door = open_door()
    assert door
    for peer in (first, second):
        invitation = door.invite()
        assert peer.ask(f"visit {invitation.address} {invitation.nonce}") == "here"
        link = door.link(invitation.nonce)
        assert link
        view = link.borrow(int(peer.ask("lend 2 8").split()[0]), 0, 2 * MIB)
        assert view.max() == 8
        peer.end()
    door.close()


def test_a_socket_in_a_shared_directory_serves_too_and_leaves_no_file(tmp_path):
    door = open_door(str(tmp_path))
    assert door
    assert [path.is_socket() for path in tmp_path.iterdir()] == [True]
    peer, invitation = Peer(), door.invite()
    assert peer.ask(f"visit {invitation.address} {invitation.nonce}") == "here"
    peer.end()
    door.close()
    assert list(tmp_path.iterdir()) == []


def test_a_server_that_stops_has_no_socket_file_any_more_and_leaves_that_of_its_successor_alone(tmp_path):
    path = tmp_path / "kpu.sock"
    stopping = open_door(str(path))
    assert stopping
    guest = visit(stopping.invite())
    assert guest
    stopping.hide()
    assert not path.exists()
    assert stopping.link(guest.session), "who is there already stays"
    successor = open_door(str(path))
    assert successor
    guest.close()
    stopping.close()
    assert path.is_socket()
    successor.close()


def test_the_socket_file_of_a_killed_server_is_taken_over_and_that_of_a_living_one_is_not(tmp_path):
    path = tmp_path / "kpu.sock"
    killed = Peer()
    assert killed.ask(f"serve {path}").startswith(str(path))
    assert open_door(str(path)) is None
    killed.end()
    assert path.is_socket()
    door = open_door(str(path))
    assert door
    door.close()
    assert not path.exists()


def _pass_time(seconds: float) -> None:
    subprocess.run(["sleep", str(seconds)], check=True)


def test_the_socket_file_of_a_server_that_is_too_busy_to_answer_is_not_taken_over(tmp_path):
    path = tmp_path / "kpu.sock"
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as busy:
        busy.bind(str(path))
        busy.listen(0)
        with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as waiting:
            waiting.connect(str(path))
            assert open_door(str(path)) is None
            assert path.is_socket()
