"""Numbers for machines, so that any number of test runs share one host without knowing of each other.

A slot is held by a lock on its file for as long as its holder lives; the kernel lets go of it even when the holder is
killed. Whoever gets a slot may therefore clear away whatever its last holder left.
"""

import fcntl
from pathlib import Path
from typing import IO

from testbed.requirements import TestbedFailed

SLOTS = 64
DIRECTORY = Path("/run/lock/tessera-testbed")
"""One for the whole host, whoever asks: links, addresses and control groups are the host's too."""


class Slot:
    def __init__(self, number: int, file: IO[str]) -> None:
        self.number = number
        self._file = file

    def release(self) -> None:
        self._file.close()


def take_slot() -> Slot:
    DIRECTORY.mkdir(parents=True, exist_ok=True)
    for number in range(SLOTS):
        file = (DIRECTORY / str(number)).open("w")
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            file.close()
            continue
        return Slot(number, file)
    raise TestbedFailed(f"all {SLOTS} machines of the testbed are in use; stop one of the running clusters")
