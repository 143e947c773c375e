"""A peer that lies, dawdles or floods gets a clean end; the server and its other clients live on."""

import fcntl
import gc
import os
import socket
import threading

import numpy as np
import pytest

from kpu.sharing import door as doors
from kpu.sharing import link as links
from kpu.sharing.addresses import to_kernel
from kpu.sharing.greeting import Invitation
from kpu.sharing.knocking import visit
from kpu.sharing.limits import Limits
from kpu.sharing.messages import LONGEST, NONCE_BYTES, Kind, Message, decode, encode

MIB = 1 << 20


class Stranger:
    """A socket that says whatever the test wants."""

    def __init__(self, invitation: Invitation, nonce: str | None = None) -> None:
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.socket.settimeout(10)
        self.socket.connect(to_kernel(invitation.address))
        self.session = invitation.nonce
        self.say(Message(Kind.HELLO, nonce=bytes.fromhex(nonce or invitation.nonce)))

    def say(self, message: Message, *fds: int) -> None:
        socket.send_fds(self.socket, [encode(message)], list(fds))

    def hears(self) -> Kind | None:
        """The kind of the next message; None when the door was shut."""
        try:
            packet = self.socket.recv(LONGEST)
        except ConnectionResetError:
            return None
        return decode(packet).kind if packet else None


@pytest.fixture
def stranger(pair):
    made: list[Stranger] = []

    def make(nonce: str | None = None) -> Stranger:
        made.append(Stranger(pair.door.invite(), nonce))
        return made[-1]

    yield make
    for one in made:
        one.socket.close()


@pytest.fixture(autouse=True)
def the_honest_client_is_served_all_along(pair):
    yield
    handover = pair.client.lend(np.full(MIB, 7, np.uint8))
    assert handover
    assert pair.server.borrow(handover.region, 0, MIB).min() == 7


def _memfd(size: int, seals: int = fcntl.F_SEAL_SHRINK) -> int:
    fd = os.memfd_create("lie", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
    os.ftruncate(fd, size)
    fcntl.fcntl(fd, fcntl.F_ADD_SEALS, seals)
    return fd


def test_a_forged_nonce_is_shown_the_door(stranger):
    assert stranger(nonce="ab" * NONCE_BYTES).hears() is None


def test_a_nonce_does_not_open_twice(pair):
    invitation = pair.door.invite()
    first = Stranger(invitation)
    assert first.hears() is Kind.WELCOME
    second = Stranger(invitation)
    assert second.hears() is None
    assert visit(invitation) is None
    first.socket.close()
    second.socket.close()


def test_a_server_elsewhere_leaves_the_client_without_shared_memory():
    assert visit(Invitation("@kpu-no-such-socket", "00" * NONCE_BYTES)) is None
    assert visit(Invitation("/no/such/directory/socket", "00" * NONCE_BYTES)) is None


def test_who_says_nothing_is_let_go_after_a_while(pair, monkeypatch):
    monkeypatch.setattr(links, "HELLO_SECONDS", 0.05)
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as silent:
        silent.settimeout(10)
        silent.connect(to_kernel(pair.door.address))
        assert silent.recv(LONGEST) == b""


def test_who_says_nothing_makes_way_for_those_who_do(pair, monkeypatch):
    monkeypatch.setattr(links, "HELLO_SECONDS", 3600.0)
    silent = [socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) for _ in range(3 * doors.STRANGERS_LIMIT)]
    for one in silent:
        one.settimeout(10)
        one.connect(to_kernel(pair.door.address))
    honest = visit(pair.door.invite())
    assert honest
    assert silent[0].recv(LONGEST) == b""
    assert sum(not link.greeted for link in pair.door._guests) <= doors.STRANGERS_LIMIT
    honest.close()
    for one in silent:
        one.close()


def test_what_all_clients_together_lend_is_bounded(connect, eventually):
    pair = connect(Limits(borrowed_bytes=2 * MIB))
    others = [guest for _ in range(3) if (guest := visit(pair.door.invite()))]
    lent = [other.link.lend(np.zeros(MIB, np.uint8)) for other in others]
    assert [handover is not None for handover in lent] == [True, True, False]
    first, second, third = others
    first.close()
    second.close()
    eventually(lambda: third.link.lend(np.zeros(MIB, np.uint8)))
    third.close()


def test_who_skips_the_greeting_gets_nothing_mapped(pair):
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as rude:
        rude.settimeout(10)
        rude.connect(to_kernel(pair.door.address))
        fd = _memfd(MIB)
        socket.send_fds(rude, [encode(Message(Kind.OFFER, 1, MIB))], [fd])
        os.close(fd)
        assert rude.recv(LONGEST) == b""


@pytest.mark.parametrize(
    ("size", "told", "seals"),
    [
        (MIB, MIB, fcntl.F_SEAL_GROW),
        (MIB, 2 * MIB, fcntl.F_SEAL_SHRINK),
        (MIB, 0, fcntl.F_SEAL_SHRINK),
        (MIB, 2**64 - 1, fcntl.F_SEAL_SHRINK),
        (2**50, 2**50, fcntl.F_SEAL_SHRINK),
    ],
    ids=["unsealed", "too small", "of no size", "of absurd size", "larger than the machine"],
)
def test_a_region_that_is_not_as_it_should_be_is_declined(stranger, size, told, seals):
    liar = stranger()
    assert liar.hears() is Kind.WELCOME
    fd = _memfd(size, seals)
    liar.say(Message(Kind.OFFER, 1, told), fd)
    os.close(fd)
    assert liar.hears() is Kind.DECLINE


def test_an_offer_without_a_descriptor_is_declined(stranger):
    liar = stranger()
    assert liar.hears() is Kind.WELCOME
    liar.say(Message(Kind.OFFER, 1, MIB))
    assert liar.hears() is Kind.DECLINE


def test_a_number_that_is_in_use_is_declined_and_the_first_region_stays(pair, stranger):
    liar = stranger()
    assert liar.hears() is Kind.WELCOME
    for expected in (Kind.ACCEPT, Kind.DECLINE):
        fd = _memfd(MIB)
        os.pwrite(fd, bytes([expected]) * 10, 0)
        liar.say(Message(Kind.OFFER, 1, MIB), fd)
        os.close(fd)
        assert liar.hears() is expected
    assert pair.door.link(liar.session).borrow(1, 0, 10)[0] == Kind.ACCEPT


@pytest.mark.usefixtures("nothing_is_left")
def test_descriptors_that_come_with_the_wrong_message_are_closed(stranger):
    liar = stranger()
    assert liar.hears() is Kind.WELCOME
    fds = [_memfd(MIB) for _ in range(3)]
    liar.say(Message(Kind.RELEASE, 5), fds[0])
    liar.say(Message(Kind.OFFER, 1, MIB), *fds)
    assert liar.hears() is None
    for fd in fds:
        os.close(fd)
    liar.socket.close()


def test_releases_of_what_was_never_lent_change_nothing(stranger):
    liar = stranger()
    assert liar.hears() is Kind.WELCOME
    for number in range(100):
        liar.say(Message(Kind.RELEASE, number))
        liar.say(Message(Kind.FORGET, number))
        liar.say(Message(Kind.ACCEPT, number))
    fd = _memfd(MIB)
    liar.say(Message(Kind.OFFER, 1, MIB), fd)
    os.close(fd)
    assert liar.hears() is Kind.ACCEPT


@pytest.mark.parametrize("packet", [b"\x00", b"\xff" * 17, b"x" * 60, b"x" * 5000, encode(Message(Kind.WELCOME))])
def test_noise_ends_the_link(stranger, packet):
    noisy = stranger()
    assert noisy.hears() is Kind.WELCOME
    noisy.socket.send(packet)
    assert noisy.hears() is None


def test_a_peer_that_never_answers_an_offer_costs_one_wait_and_then_nothing(pair, stranger, monkeypatch):
    monkeypatch.setattr(links, "ANSWER_SECONDS", 0.05)
    mute = stranger()
    assert mute.hears() is Kind.WELCOME
    link = pair.door.link(mute.session)
    assert link.lend(np.zeros(MIB, np.uint8)) is None
    assert not link.usable
    assert pair.door.link(mute.session) is None


def test_a_peer_that_never_reads_does_not_make_us_hoard_messages(pair, stranger, eventually):
    slow = stranger()
    assert slow.hears() is Kind.WELCOME
    link = pair.door.link(slow.session)
    stop = threading.Event()

    def flood() -> None:
        number = 0
        while not stop.is_set():
            number += 1
            try:
                slow.say(Message(Kind.OFFER, number, MIB))
            except OSError:
                return

    flooding = threading.Thread(target=flood)
    flooding.start()
    eventually(lambda: not link.open, seconds=20)
    stop.set()
    flooding.join()


def test_a_peer_that_never_lets_go_is_lent_a_bounded_amount(pair, stranger, monkeypatch):
    monkeypatch.setattr(doors.Door, "link", lambda self, session: self._links.get(session))
    greedy = stranger()
    assert greedy.hears() is Kind.WELCOME
    link = pair.door.link(greedy.session)
    link._lender._lending.regions_limit = 4
    answering = threading.Thread(target=_accept_all, args=(greedy, 4))
    answering.start()
    lent = [link.lend(np.zeros(MIB, np.uint8)) for _ in range(6)]
    answering.join()
    assert [handover is not None for handover in lent] == [True] * 4 + [False] * 2


def test_a_link_that_breaks_frees_what_belonged_to_it_when_its_tensors_are_gone(pair, stranger, eventually):
    peer = stranger()
    assert peer.hears() is Kind.WELCOME
    fd = _memfd(MIB)
    inode = os.fstat(fd).st_ino
    peer.say(Message(Kind.OFFER, 1, MIB), fd)
    os.close(fd)
    assert peer.hears() is Kind.ACCEPT
    view = pair.door.link(peer.session).borrow(1, 0, MIB)
    peer.socket.close()
    eventually(lambda: pair.door.link(peer.session) is None)
    view[:] = 1
    assert _is_mapped(inode)
    del view
    gc.collect()
    eventually(lambda: not _is_mapped(inode))


def _accept_all(peer: Stranger, count: int) -> None:
    for _ in range(count):
        packet, fds, _, _ = socket.recv_fds(peer.socket, LONGEST, 1)
        peer.say(Message(Kind.ACCEPT, decode(packet).region))
        for fd in fds:
            os.close(fd)


def _is_mapped(inode: int) -> bool:
    with open("/proc/self/maps") as maps:
        return any(f" {inode} " in line and "memfd:lie" in line for line in maps)
