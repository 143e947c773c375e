"""The other side, as a process that a test can kill. Commands come on stdin, and one answer each goes to stdout."""

import gc
import sys
from collections.abc import Callable

import numpy as np

from kpu.sharing.door import open_door
from kpu.sharing.greeting import Invitation
from kpu.sharing.knocking import visit
from kpu.sharing.link import Link
from kpu.sharing.located import allocate

MIB = 1 << 20


class Side:
    def __init__(self) -> None:
        self._find_link: Callable[[], Link | None] = lambda: None
        self._kept: list[np.ndarray] = []

    @property
    def _link(self) -> Link:
        link = self._find_link()
        assert link
        return link

    def serve(self, setting: str | None = None) -> str:
        door = open_door(setting)
        assert door
        invitation = door.invite()
        self._find_link = lambda: door.link(invitation.nonce)
        return f"{invitation.address} {invitation.nonce}"

    def visit(self, address: str, nonce: str) -> str:
        guest = visit(Invitation(address, nonce))
        assert guest
        self._find_link = lambda: guest.link
        return "here"

    def lend(self, mib: str, byte: str) -> str:
        return self._lend(np.full(int(mib) * MIB, int(byte), np.uint8))

    def show(self, mib: str, byte: str) -> str:
        """Lend memory that lies in a region already."""
        memory = allocate(int(mib) * MIB)
        assert memory is not None
        memory[:] = int(byte)
        self._kept.append(memory)
        return self._lend(memory)

    def lend_until_killed(self, mib: str) -> str:
        data = np.ones(int(mib) * MIB, np.uint8)
        while True:
            handover = self._link.lend(data)
            assert handover
            self._link.write_off(handover)

    def borrow(self, region: str, mib: str) -> str:
        """View and keep."""
        view = self._link.borrow(int(region), 0, int(mib) * MIB)
        self._kept.append(view)
        return f"{view.min()} {view.max()}"

    def drop(self) -> str:
        self._kept.clear()
        gc.collect()
        return "dropped"

    def _lend(self, data: np.ndarray) -> str:
        handover = self._link.lend(data)
        return f"{handover.region} {handover.offset}" if handover else "none"


if __name__ == "__main__":
    side = Side()
    for line in sys.stdin:
        command, *words = line.split()
        print(getattr(side, command)(*words), flush=True)
