"""The client's end: one link to the server that sent the invitation, if it is on this host."""

import logging
import os
import socket

from kpu.sharing.addresses import VARIABLE, seen_from_client, to_kernel
from kpu.sharing.exchange import Exchange
from kpu.sharing.greeting import Invitation
from kpu.sharing.limits import Limits
from kpu.sharing.link import Link
from kpu.sharing.messages import LONGEST, BadMessage, Kind, Message, decode, encode

log = logging.getLogger(__name__)

CONNECT_SECONDS = 2.0
# Of all visits of this process.
_lending, _borrowing = Limits().lending(), Limits().borrowing()


class Visit:
    """A link and the thread that serves it."""

    def __init__(self, sock: socket.socket, session: str, limits: Limits) -> None:
        self.session = session
        self._exchange = Exchange("kpu-shared-memory")
        self.link = Link(sock, self._exchange.bell, limits, _lending, _borrowing)
        self._exchange.add(self.link)
        self._exchange.start()

    def close(self) -> None:
        """End link and thread; tensors that were received stay what they are."""
        self._exchange.close()

    def leave(self) -> None:
        """End both soon, without waiting for it: for the garbage collector, which must not wait for a thread."""
        self._exchange.end()


def visit(invitation: Invitation, limits: Limits | None = None) -> Visit | None:
    """Connect to the server's socket and be recognised there. None: not this host, or not this server."""
    address = seen_from_client(invitation.address, os.environ.get(VARIABLE))
    try:
        sock = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    except OSError as error:  # systems other than Linux have no such sockets
        log.info("no shared memory on this system, tensors go over gRPC: %s", error)
        return None
    try:
        sock.settimeout(CONNECT_SECONDS)
        sock.connect(to_kernel(address))
        sock.sendall(encode(Message(Kind.HELLO, nonce=bytes.fromhex(invitation.nonce))))
        if decode(sock.recv(LONGEST)).kind is Kind.WELCOME:
            return Visit(sock, invitation.nonce, limits or Limits())
    except (OSError, BadMessage) as error:
        log.info("no shared memory with this server, tensors go over gRPC: %s", error)
    sock.close()
    return None
