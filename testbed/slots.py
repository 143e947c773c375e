"""Numbers for machines, so that any number of test runs share one host without knowing of each other.

A slot is held by a lock on its file for as long as its holder lives; the kernel lets go of it even when the holder is
killed. Whoever gets a slot may therefore clear away whatever its last holder left.
"""

import fcntl
from typing import IO

from testbed.building import cache_directory
from testbed.requirements import TestbedFailed

SLOTS = 64


class Slot:
    def __init__(self, number: int, file: IO[str]) -> None:
        self.number = number
        self._file = file

    def release(self) -> None:
        self._file.close()


def take_slot() -> Slot:
    directory = cache_directory() / "slots"
    directory.mkdir(parents=True, exist_ok=True)
    for number in range(SLOTS):
        file = (directory / str(number)).open("w")
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            file.close()
            continue
        return Slot(number, file)
    raise TestbedFailed(f"all {SLOTS} machines of the testbed are in use; stop one of the running clusters")
