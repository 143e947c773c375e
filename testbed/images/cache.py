"""What was made once and is used again: whole or absent, never in between.

Whoever needs a thing first makes it while others wait for its lock, in a scratch path that takes the final name only
when it is complete. A maker that is killed leaves a scratch path behind, which the next one removes.
"""

import fcntl
import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path


def default_cache() -> Path:
    home = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(home) / "tessera" / "testbed" / "images"


@contextmanager
def locked(target: Path) -> Iterator[None]:
    """Keep every other process and thread that locks the same target out."""
    target.parent.mkdir(parents=True, exist_ok=True)
    with open(beside(target, ".lock"), "w") as handle:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield


def make_once(target: Path, make: Callable[[Path], None], *, is_whole: Callable[[Path], bool] = Path.exists) -> Path:
    """`target`, which `make` writes to the path it is given if it is not there yet, or not whole any more."""
    if is_whole(target):
        return target
    with locked(target):
        if not is_whole(target):
            replace(target, make)
    return target


def beside(target: Path, suffix: str) -> Path:
    return target.with_name(target.name + suffix)


def remove(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)


def replace(target: Path, make: Callable[[Path], None]) -> None:
    scratch = beside(target, ".part")
    remove(scratch)
    try:
        make(scratch)
        remove(target)
        scratch.rename(target)
    finally:
        remove(scratch)
