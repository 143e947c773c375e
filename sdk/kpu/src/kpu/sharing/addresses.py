"""Names of Unix sockets: in the kernel alone, or a path in a directory that both sides mount.

A name in the kernel (written "@name") leaves nothing behind and needs no directory, but reaches only as far as the
network namespace. Containers that have one each need a path: `KPU_SHARED_SOCKET`, a socket or a directory for sockets.
"""

import errno
import os
import secrets
import socket
import stat
from pathlib import Path

VARIABLE = "KPU_SHARED_SOCKET"
LONGEST_PATH = 107
MODE = 0o666  # another container may run as another user; it is the nonce that lets in


def choose_address(setting: str | None) -> str:
    """Where a server listens. In a directory each server has a socket of its own."""
    name = f"kpu-{os.getpid()}-{secrets.token_hex(8)}"
    if not setting:
        return f"@{name}"
    path = os.path.join(setting, f"{name}.sock") if os.path.isdir(setting) else setting
    if len(os.fsencode(path)) > LONGEST_PATH:
        raise ValueError(f'{VARIABLE} makes "{path}", expected at most {LONGEST_PATH} bytes; use a shorter path')
    return path


def listen(address: str) -> socket.socket:
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    try:
        if not address.startswith("@"):
            _remove_leftover(Path(address))
        listener.bind(to_kernel(address))
        if not address.startswith("@"):
            os.chmod(address, MODE)
        listener.listen(64)
        listener.setblocking(False)
    except OSError:
        listener.close()
        raise
    return listener


def to_kernel(address: str) -> str:
    return f"\0{address[1:]}" if address.startswith("@") else address


def seen_from_client(address: str, setting: str | None) -> str:
    """The server's socket under the path that this side mounts it at, where `KPU_SHARED_SOCKET` is set here too."""
    if not setting or address.startswith("@"):
        return address
    return os.path.join(setting, os.path.basename(address)) if os.path.isdir(setting) else setting


def remove(address: str) -> None:
    if not address.startswith("@"):
        Path(address).unlink(missing_ok=True)


def _remove_leftover(path: Path) -> None:
    """A server that was killed leaves its socket file; one that lives is not pushed aside, however busy it is."""
    if not path.exists() or not stat.S_ISSOCK(path.stat().st_mode):
        return
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as probe:
        probe.settimeout(1)
        if probe.connect_ex(str(path)) == errno.ECONNREFUSED:
            path.unlink(missing_ok=True)
