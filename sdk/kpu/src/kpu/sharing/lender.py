"""The sending half of a link: bytes go into a region that the other side has mapped, or lie in one already.

Callers come from any thread. Copying and waiting happen outside the lock; the books are touched under it.
"""

import itertools
import logging
import threading
import weakref
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass

from kpu.errors import MalformedMessage
from kpu.sharing.allowance import Allowance
from kpu.sharing.lending import Lending, Loan
from kpu.sharing.limits import Limits
from kpu.sharing.located import Place, locate
from kpu.sharing.mappings import Bytes, view_again
from kpu.sharing.messages import Kind, Message
from kpu.sharing.pool import Pool
from kpu.sharing.regions import Region, Write, fill, have_filled, make_region, page_in
from kpu.sharing.showing import Showing

log = logging.getLogger(__name__)

PAGE_IN_BYTES = 8 << 20
PATIENCE_S_PER_BYTE = 20e-12  # a copy into fresh memory takes twenty times that


@dataclass(frozen=True)
class Handover:
    """Bytes that the other side can now view: in which region of ours, from where, and how many we copied for it.

    A copy is given, and the other side may give it back; what was not copied stays the sender's own. `turn` tells this
    use of a region from others, earlier and later.
    """

    region: int
    offset: int
    copied: int
    turn: int = 0


class Lender:
    """`offer` passes a region over and says whether it was mapped; `tell` leaves a message for the other side.

    `wake` makes the thread of the exchange look at what is to be done.
    """

    def __init__(
        self,
        limits: Limits,
        allowance: Allowance,
        lock: threading.Lock,
        offer: Callable[[int, Region], bool],
        tell: Callable[[Message], None],
        wake: Callable[[], None],
    ) -> None:
        self._smallest, self._lock, self._offer, self._tell, self._wake = limits.smallest, lock, offer, tell, wake
        self._lending = Lending(Pool(limits.idle_bytes, limits.idle_seconds), allowance, limits.regions)
        self._showing = Showing(allowance)
        self._numbers = itertools.count(1)
        self._to_page: deque[Loan] = deque()
        self._dropped: deque[int] = deque()
        self._back = threading.Condition(lock)
        self._closed = False
        self._is_pressed = False

    def may_lend(self, data: Bytes) -> bool:
        return data.nbytes >= self._smallest or (data.nbytes > 0 and locate(data) is not None)

    def lend_at_once(self, data: Bytes) -> Handover | None:
        """What lies in a region that the other side has mapped already needs neither a copy nor a wait."""
        place = locate(data)
        return self._show_known(place) if place else None

    def lend(self, data: Bytes) -> Handover | None:
        """Bytes that lie in a region are shown as they are; others are copied once, and are a true snapshot."""
        place = locate(data)
        if place:
            return self._show(place)
        return self._lend_filled(data.nbytes, lambda region: fill(region, data))

    def may_lend_written(self, nbytes: int) -> bool:
        return nbytes >= self._smallest

    def lend_written(self, nbytes: int, write: Write) -> Handover | None:
        """Bytes that `write` puts where it is told to, once."""
        return self._lend_filled(nbytes, lambda region: have_filled(region, nbytes, write))

    def write_off(self, handover: Handover) -> None:
        """The call that was to tell the other side failed: whether it views these bytes, nobody knows."""
        with self._lock:
            self._showing.let_go(handover.region)
            self._forget(self._lending.write_off(handover.region, handover.turn))

    def hold(self, number: int, offset: int, nbytes: int) -> Bytes:
        """View bytes that were lent and that the other side gives back, where they lie."""
        with self._lock:
            loan = self._lending.hold(number, offset + nbytes)
        if loan is None:
            raise MalformedMessage(
                f"the other side gives back {nbytes} bytes from {offset} of shared region {number}, expected a region "
                "and bytes that it was lent"
            )
        view = view_again(loan.region.memory.data, offset, nbytes)
        weakref.finalize(view, self._let_go, number).atexit = False
        return view

    def part_with_idle(self) -> None:
        """Somebody else needs the memory of regions that nobody uses. The thread of the exchange sees to it."""
        self._is_pressed = True
        self._wake()

    def _let_go(self, number: int) -> None:
        """Called by the garbage collector, which may come when the lock is taken: so it is only noted."""
        self._dropped.append(number)
        self._wake()

    def _show(self, place: Place) -> Handover | None:
        known = self._show_known(place)
        if known:
            return known
        number = next(self._numbers)
        with self._lock:
            if not self._showing.hold(number, place.region):
                return None
        if not self._offer(number, place.region):
            with self._lock:
                self._showing.let_go(number)
            return None
        weakref.finalize(place.region, self._tell, Message(Kind.FORGET, number)).atexit = False
        with self._lock:
            self._showing.enter(number, place.region)
        return Handover(number, place.offset, 0)

    def _show_known(self, place: Place) -> Handover | None:
        with self._lock:
            number = self._showing.number_of(place.region)
            if number is None or not self._showing.hold(number, place.region):
                return None
        return Handover(number, place.offset, 0)

    def _warm_region(self, nbytes: int) -> Loan | None:
        """One that is idle. One that is out may be on its way back: it is worth a wait that is short beside a copy."""
        with self._lock:
            loan = self._lending.reuse(nbytes)
            if loan is None and self._lending.may_come_back(nbytes):
                loan = self._back.wait_for(lambda: self._lending.reuse(nbytes), nbytes * PATIENCE_S_PER_BYTE)
            return loan

    def _fresh_region(self, nbytes: int) -> Loan | None:
        with self._lock:
            if self._closed:
                return None
            fits, leaving = self._lending.make_room(nbytes)
            self._forget(leaving)
            if not fits:
                return None
            try:
                return self._lending.enter(next(self._numbers), make_region(nbytes))
            except OSError as error:
                self._lending.refuse_room(nbytes)
                log.warning("no shared memory, a tensor goes over gRPC: %s", error)
                return None

    def _lend_filled(self, nbytes: int, fill_it: Callable[[Region], None]) -> Handover | None:
        loan = (self._warm_region(nbytes) or self._fresh_region(nbytes)) if nbytes >= self._smallest else None
        if loan is None:
            return None
        handover = Handover(loan.number, 0, nbytes, loan.turn)
        try:
            fill_it(loan.region)
        except OSError as error:
            log.warning("no shared memory, a tensor goes over gRPC: %s", error)
            self.write_off(handover)
            return None
        except BaseException:
            self.write_off(handover)
            raise
        if loan.region.fd >= 0:
            if not self._offer(loan.number, loan.region):
                self.write_off(handover)
                return None
            loan.region.close_file()
        return handover

    # What the thread of the exchange calls; those that change the books, under the lock.

    @property
    def next_expiry(self) -> float | None:
        return self._lending.pool.next_expiry

    def released(self, number: int, now: float) -> None:
        """The other side let go of one tensor."""
        self._showing.let_go(number)
        loan = self._lending.find(number)
        self._forget(self._lending.take_back(number, now))
        self._back.notify_all()
        if loan and loan.region.paged < loan.region.written:
            self._to_page.append(loan)

    def expect_back(self, number: int) -> None:
        """The other side gives back what it was lent."""
        self._lending.expect_back(number)

    def tidy(self, now: float) -> None:
        """Put back what was dropped here, and part with what was idle for too long."""
        while self._dropped:
            self._forget(self._lending.let_go(self._dropped.popleft(), now))
            self._back.notify_all()
        leaving = self._lending.part_with_idle() if self._is_pressed else self._lending.expire(now)
        self._is_pressed = False
        self._forget(leaving)

    def close(self) -> None:
        self._closed = True
        self._lending.close()
        self._showing.close()
        self._to_page.clear()

    def page_in_some(self) -> bool:
        """Make a returned region quick to fill, a piece at a time; says whether there is more to do.

        Not one that is out again: who fills it touches every page, and two who do so hinder each other.
        """
        if self._to_page and (self._to_page[0].out or not page_in(self._to_page[0].region, PAGE_IN_BYTES)):
            self._to_page.popleft()
        return bool(self._to_page)

    def _forget(self, loans: list[Loan]) -> None:
        for loan in loans:
            self._tell(Message(Kind.FORGET, loan.number))
