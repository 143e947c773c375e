"""The server's end: a socket at which clients of this host knock, and the links to those who were let in."""

import logging
import socket
import time

from kpu.sharing.addresses import choose_address, listen, remove
from kpu.sharing.allowance import Allowance
from kpu.sharing.exchange import Exchange
from kpu.sharing.greeting import Invitation, Nonces
from kpu.sharing.limits import Limits
from kpu.sharing.link import Link

log = logging.getLogger(__name__)

LINKS_LIMIT = 256
# Who connects and does not say who he is makes way for the next: that takes others no more than a moment.
STRANGERS_LIMIT = 16
BREATH_S = 0.05


class Door:
    def __init__(self, address: str, listener: socket.socket, limits: Limits, lending: Allowance) -> None:
        self.address = address
        self.open = True
        self._is_hidden = False
        self.waits_to_write = False
        self._listener, self._limits = listener, limits
        self._lending, self._borrowing = lending, limits.borrowing()
        self._nonces = Nonces()
        self._links: dict[str, Link] = {}
        self._guests: list[Link] = []
        self._exchange = Exchange("kpu-shared-memory")
        self._exchange.add(self)
        self._exchange.start()

    def invite(self) -> Invitation:
        """What a caller of Greet is answered."""
        return Invitation(self.address, self._nonces.give(time.monotonic()))

    def link(self, session: str | None) -> Link | None:
        """The link to the caller who names this session, if it stands."""
        link = self._links.get(session) if session else None
        return link if link and link.usable else None

    def hide(self) -> None:
        """Nobody finds it from now on; links stand. Only once: another server may have the name next."""
        if not self._is_hidden:
            self._is_hidden = True
            remove(self.address)

    def close(self) -> None:
        """End the thread and all links; tensors that were received stay what they are."""
        self._exchange.close()

    def part_with_idle(self) -> None:
        """Give back the memory of regions that nobody uses, soon. Any thread may say so."""
        for link in self._guests:
            link.part_with_idle()

    def fileno(self) -> int:
        return self._listener.fileno()

    def read(self) -> None:
        try:
            guest, _ = self._listener.accept()
        except BlockingIOError:
            return
        except OSError as error:
            log.warning("no connection for shared memory could be taken in: %s", error)
            time.sleep(BREATH_S)
            return
        if sum(link.greeted for link in self._guests) >= LINKS_LIMIT:
            guest.close()
            return
        strangers = [link for link in self._guests if link.open and not link.greeted]
        if len(strangers) >= STRANGERS_LIMIT:
            strangers[0].shut("others knock, and it does not say who it is")
        self._let_in(guest)

    def tend(self, now: float) -> float | None:
        """Drop the links that have ended from the list."""
        del now
        self._guests = [link for link in self._guests if link.open]
        self._links = {session: link for session, link in self._links.items() if link.open}
        return None

    def shut(self, why: str) -> None:
        self.open = False
        log.debug("the door for shared memory is shut: %s", why)

    def dispose(self) -> None:
        self._listener.close()
        self.hide()
        self._links.clear()

    def _let_in(self, guest: socket.socket) -> None:
        def admits(nonce: bytes) -> bool:
            known = self._nonces.redeem(nonce.hex(), time.monotonic())
            if known:
                self._links[nonce.hex()] = link
            return known

        link = Link(guest, self._exchange.bell, self._limits, self._lending, self._borrowing, admits)
        self._guests.append(link)
        self._exchange.add(link)


def open_door(setting: str | None = None, limits: Limits | None = None, within: Allowance | None = None) -> Door | None:
    """Listen for clients of this host; None, with a line in the log, where the system does not let us.

    What its links lend is taken of the sum `within` which it is to stay.
    """
    limits = limits or Limits()
    try:
        address = choose_address(setting)
        return Door(address, listen(address), limits, limits.lending(within))
    except (OSError, ValueError) as error:
        log.warning("shared memory is off: %s", error)
        return None
