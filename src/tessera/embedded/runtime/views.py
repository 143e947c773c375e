"""The volumes of a container where no mount namespace can be had: a tree of links beside it.

Nothing can be shown at its mount path then. The variable TESSERA_VIEW names a directory in which every mount path is
found again, `$TESSERA_VIEW/etc/mpi` for `/etc/mpi`; a program that knows nothing of it does not find its files, and an
event says which ones.
"""

import os
from collections.abc import Sequence
from pathlib import Path

from tessera.embedded.runtime.namespaces import Shown

VARIABLE = "TESSERA_VIEW"


def lay_out(view: Path, mounts: Sequence[Shown]) -> list[str]:
    """Returns the mount paths at which a container sees something else, or nothing."""
    unseen: list[str] = []
    for shown in sorted(mounts, key=lambda shown: shown.target):
        link = view / shown.target.lstrip("/")
        if not any(parent.is_symlink() for parent in link.parents if parent.is_relative_to(view)):
            link.parent.mkdir(parents=True, exist_ok=True)
            link.unlink(missing_ok=True)
            link.symlink_to(shown.source)
        if not _is_same(shown.source, shown.target):
            unseen.append(shown.target)
    return unseen


def explain_unseen(targets: Sequence[str], view: Path) -> str:
    return (
        f"{', '.join(targets)} cannot be mounted, as this machine permits no user namespaces: found below {view}"
        f" instead ({VARIABLE}); permit them (kernel.apparmor_restrict_unprivileged_userns=0) or run as root"
    )


def _is_same(source: str, target: str) -> bool:
    return os.path.exists(source) and os.path.exists(target) and os.path.samefile(source, target)
