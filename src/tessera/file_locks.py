"""Locks on single bytes of files, as who does not hold them sees them."""

import fcntl
import os
import struct

_FLOCK = struct.Struct("@hhqqi4x")


def is_locked(descriptor: int, start: int, length: int = 1) -> bool:
    """Whether anybody holds a lock there; a length of 0 reaches to the end, wherever that is."""
    return _ask(descriptor, fcntl.F_OFD_GETLK, start, length)[0] != fcntl.F_UNLCK


def lock_holder(descriptor: int, byte: int) -> int:
    """The process that holds a lock of its own there, by its number in our namespace; 0 where none does or is in it."""
    kind, _, _, _, pid = _ask(descriptor, fcntl.F_GETLK, byte, 1)
    return pid if kind != fcntl.F_UNLCK and pid > 0 else 0


def _ask(descriptor: int, question: int, start: int, length: int) -> tuple[int, ...]:
    wish = _FLOCK.pack(fcntl.F_WRLCK, os.SEEK_SET, start, length, 0)
    return _FLOCK.unpack(fcntl.fcntl(descriptor, question, wish))
