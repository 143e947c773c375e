"""One connection to a process of this host: bytes are lent to it, and bytes that it lends are viewed.

Both ends are alike. Callers come from any thread; the thread of the exchange alone reads and writes the socket.
"""

import logging
import os
import socket
import threading
import time
import weakref
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field

from kpu.errors import BypassClosed, MalformedMessage
from kpu.sharing.allowance import Allowance
from kpu.sharing.borrowing import Borrowing
from kpu.sharing.exchange import Bell
from kpu.sharing.lender import Handover, Lender
from kpu.sharing.limits import Limits
from kpu.sharing.mappings import Bytes
from kpu.sharing.messages import Kind, Message
from kpu.sharing.packets import Packets, PeerGone
from kpu.sharing.regions import BadRegion, Region, Write, map_offered
from kpu.wire.bypass import CLOSED

log = logging.getLogger(__name__)

ANSWER_SECONDS = 2.0
HELLO_SECONDS = 5.0
MESSAGES_AT_ONCE = 64

Admission = Callable[[bytes], bool]


@dataclass
class _Answer:
    given: threading.Event = field(default_factory=threading.Event)
    accepted: bool = False


class Link:
    """`lending` and `borrowing` bound what all links of this process lend and borrow.

    `admission` is asked about the nonce that a stranger presents; without it the link is usable at once.
    """

    def __init__(
        self,
        sock: socket.socket,
        bell: Bell,
        limits: Limits,
        lending: Allowance,
        borrowing: Allowance,
        admission: Admission | None = None,
    ) -> None:
        self.open = True
        self._packets, self._bell, self._admission = Packets(sock), bell, admission
        self._since, self._owner = time.monotonic(), os.getpid()
        self._lock = threading.Lock()
        self._lender = Lender(limits, lending, self._lock, self._offer, self._note, bell.ring)
        self._borrowing = Borrowing(borrowing, limits.regions)
        self._answers: dict[int, _Answer] = {}
        self._notes: deque[Message] = deque()

    @property
    def greeted(self) -> bool:
        """Whether the other side has shown who it is."""
        return self._admission is None

    @property
    def usable(self) -> bool:
        """A child that was forked has the socket, but not the thread that serves it."""
        return self.open and self.greeted and self._owner == os.getpid()

    def may_lend(self, data: Bytes) -> bool:
        """Says at once whether `lend` is worth trying."""
        return self.usable and self._lender.may_lend(data)

    def may_lend_written(self, nbytes: int) -> bool:
        return self.usable and self._lender.may_lend_written(nbytes)

    def lend_at_once(self, data: Bytes) -> Handover | None:
        """As `lend`, but None rather than copy or wait."""
        return self._lender.lend_at_once(data) if self.usable and data.nbytes else None

    def lend(self, data: Bytes) -> Handover | None:
        """Let the other side view these bytes, or None if that cannot be: then they go by another way."""
        handover = self._lender.lend(data) if self.usable and data.nbytes else None
        return handover if self.open else None

    def lend_written(self, nbytes: int, write: Write) -> Handover | None:
        """As `lend`, for bytes that somebody else writes where the other side views them."""
        handover = self._lender.lend_written(nbytes, write) if self.usable and nbytes else None
        return handover if self.open else None

    def write_off(self, handover: Handover) -> None:
        """The call that was to tell the other side about these bytes failed."""
        self._lender.write_off(handover)

    def borrow(self, region: int, offset: int, nbytes: int) -> Bytes:
        """View what the other side has lent, writable. It gets its region back when the last tensor on it is gone."""
        with self._lock:
            if not self.open:
                raise BypassClosed(CLOSED)
            view = self._borrowing.view(region, offset, nbytes)
        weakref.finalize(view, self._note, Message(Kind.RELEASE, region)).atexit = False
        return view

    def borrowed_size(self, region: int) -> int:
        """Bytes of a whole region of the other side, all of which stay in memory while a tensor lies there."""
        return self._borrowing.size_of(region)

    def give_back(self, region: int) -> None:
        """Before the other side is sent a tensor that lies in a region of its own: so that it does not fill it again.

        What is viewed there is released as ever, and that is heard after this.
        """
        self._note(Message(Kind.RETURN, region))

    def get_back(self, region: int, offset: int, nbytes: int) -> Bytes:
        """View what was lent to the other side and is given back by it. The books of a link that closed are empty."""
        try:
            return self._lender.hold(region, offset, nbytes)
        except MalformedMessage:
            if self.open:
                raise
            raise BypassClosed(CLOSED) from None

    def part_with_idle(self) -> None:
        """Give back the memory of regions that nobody uses, soon."""
        self._lender.part_with_idle()

    def shut(self, why: str) -> None:
        """Nothing is lent any more. Tensors that lie in regions of the other side stay what they are."""
        with self._lock:
            if not self.open:
                return
            self.open = False
            for answer in self._answers.values():
                answer.given.set()
        log.info("shared memory link closed: %s", why)
        self._bell.ring()

    def _offer(self, number: int, region: Region) -> bool:
        """Pass a region over, and wait until the other side has mapped it or will not."""
        answer = _Answer()
        with self._lock:
            if not self.open:
                return False
            try:
                self._packets.post(Message(Kind.OFFER, number, region.size), region.fd)
            except (PeerGone, OSError) as error:
                log.warning("no shared memory, a tensor goes over gRPC: %s", error)
                return False
            self._answers[number] = answer
        self._bell.ring()
        if not answer.given.wait(ANSWER_SECONDS):
            self.shut(f"an offer was not answered within {ANSWER_SECONDS:g} s")
        with self._lock:
            del self._answers[number]
        return answer.accepted

    def _note(self, message: Message) -> None:
        """Leave word for the thread; called wherever the garbage collector pleases, so no lock is taken."""
        if self.open:
            self._notes.append(message)
            self._bell.ring()

    # What the thread of the exchange calls.

    @property
    def waits_to_write(self) -> bool:
        return self._packets.waits_to_write

    def fileno(self) -> int:
        return self._packets.fileno()

    def read(self) -> None:
        try:
            for _ in range(MESSAGES_AT_ONCE):
                received = self._packets.receive()
                if received is None:
                    return
                self._take_in(*received)
        except PeerGone as error:
            self.shut(str(error))

    def tend(self, now: float) -> float | None:
        if self._admission and now > self._since + HELLO_SECONDS:
            self.shut(f"no greeting came within {HELLO_SECONDS:g} s")
            return None
        try:
            with self._lock:
                self._lender.tidy(now)
                self._deliver_notes()
        except PeerGone as error:
            self.shut(str(error))
            return None
        if self._lender.page_in_some():
            return now
        return self._since + HELLO_SECONDS if self._admission else self._lender.next_expiry

    def dispose(self) -> None:
        with self._lock:
            self._packets.close()
            self._lender.close()
            self._borrowing.close()
            self._notes.clear()

    def _take_in(self, message: Message, fd: int) -> None:
        try:
            if self._admission:
                self._greet(message, self._admission)
            else:
                with self._lock:
                    self._enter(message, fd)
        finally:
            if fd >= 0:
                os.close(fd)

    def _greet(self, message: Message, admission: Admission) -> None:
        if message.kind is not Kind.HELLO or not admission(message.nonce):
            raise PeerGone("the other side presented no nonce of ours, expected the one that Greet gave it")
        self._admission = None
        self._packets.post(Message(Kind.WELCOME))
        log.info("shared memory link opened: pid %d, uid %d, gid %d", *self._packets.peer())

    def _enter(self, message: Message, fd: int) -> None:
        match message.kind:
            case Kind.OFFER:
                kind = Kind.ACCEPT if self._accepts(message, fd) else Kind.DECLINE
                self._packets.post(Message(kind, message.region))
            case Kind.ACCEPT | Kind.DECLINE:
                answer = self._answers.get(message.region)
                if answer:
                    answer.accepted = message.kind is Kind.ACCEPT
                    answer.given.set()
            case Kind.RELEASE:
                self._lender.released(message.region, time.monotonic())
            case Kind.RETURN:
                self._lender.expect_back(message.region)
            case Kind.FORGET:
                self._borrowing.forget(message.region)
            case Kind.HELLO | Kind.WELCOME:
                raise PeerGone("the other side greeted twice")

    def _accepts(self, message: Message, fd: int) -> bool:
        if fd < 0 or not self._borrowing.has_room_for(message.region, message.size):
            return False
        try:
            self._borrowing.enter(message.region, map_offered(fd, message.size))
        except (BadRegion, OSError) as error:
            log.warning("shared memory offered by another process was declined: %s", error)
            self._borrowing.refuse(message.size)
            return False
        return True

    def _deliver_notes(self) -> None:
        """Say what is gone. Notes wait here and not in the outbox when the other side is slow to read."""
        self._packets.flush()
        while self._notes and not self._packets.waits_to_write:
            note = self._notes.popleft()
            if note.kind is Kind.RELEASE:
                self._borrowing.let_go(note.region)
            self._packets.post(note)
            self._packets.flush()
