"""What containers and their node's agent share while the machine is up; nothing of it is of use after that.

It is best on a tmpfs, as /run is: the files are mapped and written all the time, and what a container writes there
counts as its own memory. For each container there is a region, what its processes tell each other; for each card a
file in which the tenants of that card take turns; and the socket at which a process learns its number on the host.
"""

import os
from collections.abc import Iterable
from pathlib import Path

ANYBODY = 0o666
"""Containers run as any user."""
OURS = 0o700


class RunDirectory:
    def __init__(self, root: Path) -> None:
        self.root = root
        self.cards = root / "cards"
        self.socket = root / "agent" / "socket"

    def region(self, pod_uid: str, container: str) -> Path:
        """As the catalogue has it for NVIDIA: containers of a pod have their own, and all tiles of a container one."""
        return self.root / "tiles" / f"{pod_uid}_{container}" / "region"

    def make(self) -> None:
        """Containers are given single files and the socket's directory; other users of the machine get at nothing."""
        for directory in (self.cards, self.socket.parent):
            directory.mkdir(parents=True, exist_ok=True)
        self.root.chmod(OURS)

    def make_cards(self, uuids: Iterable[str]) -> None:
        """One that is there stays: tenants have it open."""
        self.cards.mkdir(parents=True, exist_ok=True)
        for uuid in uuids:
            make_shared_file(self.cards / uuid)


def make_shared_file(path: Path) -> None:
    """An empty file that anybody may write, unless there is one."""
    path.parent.mkdir(parents=True, exist_ok=True)
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, ANYBODY)
    try:
        os.fchmod(descriptor, ANYBODY)
    finally:
        os.close(descriptor)
