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
from kpu.sharing.lending import Allowance, Lending, Loan
from kpu.sharing.limits import Limits
from kpu.sharing.located import Place, locate
from kpu.sharing.mappings import Bytes, view_again
from kpu.sharing.messages import Kind, Message
from kpu.sharing.pool import Pool
from kpu.sharing.regions import Region, fill, make_region, page_in
from kpu.sharing.showing import Showing

log = logging.getLogger(__name__)

PAGE_IN_BYTES = 8 << 20
PATIENCE_S_PER_BYTE = 20e-12  # a copy into fresh memory takes twenty times that


@dataclass(frozen=True)
class Handover:
    """Bytes that the other side can now view: in which region of ours, from where, and how many we copied for it.

    A copy is given, and the other side may give it back; what was not copied stays the sender's own.
    """

    region: int
    offset: int
    copied: int


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
        self._showing = Showing()
        self._numbers = itertools.count(1)
        self._to_page: deque[Loan] = deque()
        self._dropped: deque[int] = deque()
        self._back = threading.Condition(lock)
        self._closed = False

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
        if data.nbytes < self._smallest:
            return None
        loan = self._warm_region(data.nbytes) or self._fresh_region(data.nbytes)
        return self._fill_and_offer(loan, data) if loan else None

    def write_off(self, handover: Handover) -> None:
        """The call that was to tell the other side failed: whether it views these bytes, nobody knows."""
        with self._lock:
            self._showing.let_go(handover.region)
            self._forget(self._lending.write_off(handover.region))

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

    def _let_go(self, number: int) -> None:
        """Called by the garbage collector, which may come when the lock is taken: so it is only noted."""
        self._dropped.append(number)
        self._wake()

    def _show(self, place: Place) -> Handover | None:
        known = self._show_known(place)
        if known:
            return known
        number = next(self._numbers)
        if not self._offer(number, place.region):
            return None
        weakref.finalize(place.region, self._tell, Message(Kind.FORGET, number)).atexit = False
        with self._lock:
            self._showing.enter(number, place.region)
        return self._show_known(place)

    def _show_known(self, place: Place) -> Handover | None:
        with self._lock:
            number = self._showing.number_of(place.region)
            if number is None:
                return None
            self._showing.hold(number, place.region)
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

    def _fill_and_offer(self, loan: Loan, data: Bytes) -> Handover | None:
        handover = Handover(loan.number, 0, data.nbytes)
        try:
            fill(loan.region, data)
        except OSError as error:
            log.warning("no shared memory, a tensor goes over gRPC: %s", error)
            self.write_off(handover)
            return None
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
        self._forget(self._lending.expire(now))

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
