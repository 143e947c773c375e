"""One process at a time: whoever has the lock beside a state file may use it, and the kernel frees it for the dead."""

import fcntl
import os
from contextlib import suppress
from pathlib import Path

from tessera.errors import StoreInUse

OURS = 0o600


class Lock:
    """The file stays when the lock is given back: removing it would let two processes hold one each."""

    def __init__(self, path: Path) -> None:
        self._file = os.open(path.with_name(f"{path.name}.lock"), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, OURS)
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            holder = os.pread(self._file, 32, 0).decode(errors="replace").strip()
            os.close(self._file)
            who = f"process {holder}" if holder else "another process"
            raise StoreInUse(f"{path}: in use by {who}; stop it first, or choose another state directory") from None
        with suppress(OSError):  # on a full disk we hold it without a name
            os.ftruncate(self._file, 0)
            os.pwrite(self._file, f"{os.getpid()}\n".encode(), 0)

    def release(self) -> None:
        os.close(self._file)
