"""A Unix socket on which messages and descriptors go, and which never blocks the thread that serves it.

What the other side does not read waits in an outbox. The outbox is bounded: a peer that never reads is cut off.
"""

import array
import os
import socket
import struct
from collections import deque

from kpu.sharing.messages import LONGEST, BadMessage, Message, decode, encode

OUTBOX_LIMIT = 4096
_RIGHTS_BYTES = socket.CMSG_SPACE(4 * array.array("i").itemsize)


class PeerGone(Exception):
    """The other side has closed the socket, or does not keep to what was agreed."""


class Packets:
    def __init__(self, sock: socket.socket) -> None:
        sock.setblocking(False)
        self._socket = sock
        self._outbox: deque[tuple[Message, int]] = deque()

    def fileno(self) -> int:
        return self._socket.fileno()

    def peer(self) -> tuple[int, int, int]:
        """Process, user and group of the other side, as the kernel saw them when it connected."""
        pid, uid, gid = struct.unpack("3i", self._socket.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12))
        return pid, uid, gid

    @property
    def waits_to_write(self) -> bool:
        return bool(self._outbox)

    def post(self, message: Message, fd: int = -1) -> None:
        """Put a message out; a descriptor goes with it as a copy of ours, so that the caller may close its own."""
        if len(self._outbox) >= OUTBOX_LIMIT:
            raise PeerGone(f"{OUTBOX_LIMIT} messages wait because the other side does not read")
        self._outbox.append((message, os.dup(fd) if fd >= 0 else -1))

    def flush(self) -> None:
        """Write what the socket takes now."""
        while self._outbox:
            message, fd = self._outbox[0]
            try:
                socket.send_fds(self._socket, [encode(message)], [fd] if fd >= 0 else [])
            except BlockingIOError:
                return
            except OSError as error:
                raise PeerGone(f"writing to the other side failed: {error.strerror}") from None
            self._outbox.popleft()
            if fd >= 0:
                os.close(fd)

    def receive(self) -> tuple[Message, int] | None:
        """The next message and the descriptor that came with it (-1: none), or None when nothing waits."""
        try:
            packet, ancillary, flags, _ = self._socket.recvmsg(LONGEST, _RIGHTS_BYTES, socket.MSG_CMSG_CLOEXEC)
        except BlockingIOError:
            return None
        except OSError as error:
            raise PeerGone(f"reading from the other side failed: {error.strerror}") from None
        fds = _descriptors(ancillary)
        try:
            if not packet:
                raise PeerGone("the other side has closed the connection")
            if flags & socket.MSG_TRUNC or len(fds) > 1:
                raise PeerGone("the other side sent more than one message holds")
            return decode(packet), fds.pop() if fds else -1
        except BadMessage as error:
            raise PeerGone(str(error)) from None
        finally:
            for fd in fds:
                os.close(fd)

    def close(self) -> None:
        self._socket.close()
        while self._outbox:
            _, fd = self._outbox.popleft()
            if fd >= 0:
                os.close(fd)


def _descriptors(ancillary: "list[tuple[int, int, bytes]]") -> list[int]:
    fds = array.array("i")
    for level, kind, data in ancillary:
        if level == socket.SOL_SOCKET and kind == socket.SCM_RIGHTS:
            fds.frombytes(data[: len(data) - len(data) % fds.itemsize])
    return fds.tolist()
