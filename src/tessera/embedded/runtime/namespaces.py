"""What a container sees: this machine's file system, with the pod's volumes at their mount paths.

A process that may make a mount namespace (root, or any user where the kernel permits user namespaces) has bind mounts
in it. A mount path that this machine does not have needs a mount point, and none may be made in the machine's own
directories. So the nearest directory that exists is mirrored: a tmpfs takes its place, every entry of the original is
bound into it, and there is room for the mount point beside them. The root itself is mirrored elsewhere, and the mirror
becomes the root. Files that a container makes directly in a mirrored directory are its own and go with it.

Nothing of this is seen outside, and all of it is gone with the last process of the container.
"""

import os
import stat
from collections.abc import Iterable, Sequence
from contextlib import suppress
from typing import NamedTuple

from tessera.embedded.runtime import kernel

KINDS = ("user", "mnt", "uts")


class Shown(NamedTuple):
    """A file or directory of this machine, and where a container sees it."""

    source: str
    target: str
    read_only: bool = False


def enter(hostname: str) -> None:
    """Make namespaces of one's own. The user stays who they were."""
    user, group = os.geteuid(), os.getegid()
    try:
        kernel.unshare(kernel.NEW_MOUNTS | kernel.NEW_HOSTNAME)
    except PermissionError:
        kernel.unshare(kernel.NEW_USERS | kernel.NEW_MOUNTS | kernel.NEW_HOSTNAME)
        _write("/proc/self/setgroups", "deny")
        _write("/proc/self/uid_map", f"{user} {user} 1")
        _write("/proc/self/gid_map", f"{group} {group} 1")
    kernel.mount("", "/", flags=kernel.RECURSIVE | kernel.SLAVE)
    if hostname:
        kernel.set_hostname(hostname[:63])


def join(pid: int) -> None:
    """Be where another process is."""
    descriptors = [
        os.open(f"/proc/{pid}/ns/{kind}", os.O_RDONLY)
        for kind in KINDS
        if os.readlink(f"/proc/{pid}/ns/{kind}") != os.readlink(f"/proc/self/ns/{kind}")
    ]
    for descriptor in descriptors:
        kernel.join_namespace(descriptor)
        os.close(descriptor)


def show(mounts: Sequence[Shown], spare: str) -> None:
    """Bind all of it, outer paths first. `spare` is an empty directory, where the root is mirrored if it must be."""
    opened = [(shown, os.open(shown.source, os.O_PATH)) for shown in sorted(mounts, key=lambda shown: shown.target)]
    targets = [os.path.realpath(shown.target) for shown, _ in opened]
    own, root = _Own(), ""
    if any(nearest_directory(target) == "/" for target in targets):
        root = spare
        own.made.add(root)
        kernel.mount("tmpfs", root, "tmpfs", options="mode=755")
        _fill(root, "/", os.listdir("/"))
    for (shown, source), target in zip(opened, targets, strict=True):
        point = root + target
        if not os.path.lexists(point):
            own.make_point(point, is_directory=stat.S_ISDIR(os.fstat(source).st_mode))
        _bind(f"/proc/self/fd/{source}", point, read_only=shown.read_only)
        own.volumes.append(point)
        os.close(source)
    if root:
        os.chdir(root)
        kernel.pivot_root_here()


def nearest_directory(path: str) -> str:
    """The longest part of the path that this machine has."""
    while not os.path.lexists(path):
        path = os.path.dirname(path)
    return path


class _Own:
    """Which directories are the container's own, where a mount point may be made."""

    def __init__(self) -> None:
        self.made: set[str] = set()
        self.volumes: list[str] = []

    def make_point(self, target: str, *, is_directory: bool) -> None:
        nearest = nearest_directory(target)
        if nearest not in self.made and not any(_is_within(nearest, volume) for volume in self.volumes):
            _mirror(nearest)
            self.made.add(nearest)
        parent = target if is_directory else os.path.dirname(target)
        os.makedirs(parent, exist_ok=True)
        if not is_directory:
            _make_file(target)
        while parent != nearest:
            self.made.add(parent)
            parent = os.path.dirname(parent)


def _mirror(directory: str) -> None:
    original = os.open(directory, os.O_PATH)
    names = os.listdir(directory)
    mode = stat.S_IMODE(os.fstat(original).st_mode)
    kernel.mount("tmpfs", directory, "tmpfs", options=f"mode={mode:o}")
    _fill(directory, f"/proc/self/fd/{original}", names)
    os.close(original)


def _fill(mirror: str, original: str, names: Iterable[str]) -> None:
    """An entry that went away meanwhile, or that we may not see, is left out."""
    for name in names:
        source, target = os.path.join(original, name), os.path.join(mirror, name)
        with suppress(OSError):
            mode = os.lstat(source).st_mode
            if stat.S_ISLNK(mode):
                os.symlink(os.readlink(source), target)
                continue
            if stat.S_ISDIR(mode):
                os.mkdir(target)
            else:
                _make_file(target)
            _bind(source, target)


def _bind(source: str, target: str, *, read_only: bool = False) -> None:
    kernel.mount(source, target, flags=kernel.BIND | kernel.RECURSIVE)
    if read_only:
        # What the mount forbade before may not be permitted again by a user who is not root.
        kept = os.statvfs(target).f_flag & (kernel.NO_SUID | kernel.NO_DEV | kernel.NO_EXEC)
        kernel.mount("", target, flags=kernel.REMOUNT | kernel.BIND | kernel.READ_ONLY | kept)


def _is_within(path: str, directory: str) -> bool:
    return path == directory or path.startswith(f"{directory.rstrip('/')}/")


def _make_file(path: str) -> None:
    os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o644))


def _write(path: str, text: str) -> None:
    with open(path, "w") as file:
        file.write(text)
