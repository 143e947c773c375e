"""Calls of Linux that Python 3.11 has no name for. Each raises OSError as the calls in `os` do."""

import ctypes
import os
from ctypes import c_char_p, c_int, c_ulong

NEW_MOUNTS, NEW_HOSTNAME, NEW_USERS = 0x00020000, 0x04000000, 0x10000000

READ_ONLY, NO_SUID, NO_DEV, NO_EXEC, REMOUNT = 1, 2, 4, 8, 32
BIND, RECURSIVE, SLAVE = 4096, 16384, 1 << 19
DETACH = 2

_SET_DEATH_SIGNAL, _SET_SUBREAPER = 1, 36

_libc = ctypes.CDLL(None, use_errno=True)


def unshare(flags: int) -> None:
    _check(_libc.unshare(c_int(flags)))


def join_namespace(descriptor: int) -> None:
    _check(_libc.setns(c_int(descriptor), c_int(0)))


def mount(source: str, target: str, kind: str = "", flags: int = 0, options: str = "") -> None:
    words = (c_char_p(os.fsencode(word)) for word in (source, target, kind))
    _check(_libc.mount(*words, c_ulong(flags), c_char_p(os.fsencode(options))), target)


def pivot_root_here() -> None:
    """Make the working directory, a mount point, the root; what was the root is no longer reachable."""
    _check(_libc.pivot_root(b".", b"."), "/")
    _check(_libc.umount2(b".", c_int(DETACH)), "/")


def set_hostname(name: str) -> None:
    encoded = os.fsencode(name)
    _check(_libc.sethostname(c_char_p(encoded), c_ulong(len(encoded))))


def die_with_parent(signal: int) -> None:
    """Be sent the signal when the process that made this one ends."""
    _check(_libc.prctl(c_int(_SET_DEATH_SIGNAL), c_ulong(signal)))


def adopt_orphans() -> None:
    """Descendants whose parents end become children of this process, however often they forked."""
    _check(_libc.prctl(c_int(_SET_SUBREAPER), c_ulong(1)))


def _check(result: int, path: str | None = None) -> None:
    if result != 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number), path)
