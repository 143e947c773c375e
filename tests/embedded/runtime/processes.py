"""Looking at the processes of this machine, as they are."""

import time
from pathlib import Path

from tessera.embedded.runtime import process

PATIENCE_S = 30


def shims_of(pid):
    """The supervisors among the children of an engine."""
    return [child for child in children_of(pid) if process.SUPERVISE in Path(f"/proc/{child}/cmdline").read_text()]


def pids_with(word):
    found = set()
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            if word in path.read_text(errors="replace") and "engine_program" not in path.read_text(errors="replace"):
                found.add(int(path.parent.name))
        except OSError:
            continue
    return found


def eventually(holds):
    deadline_s = time.monotonic() + PATIENCE_S
    while not holds():
        assert time.monotonic() < deadline_s
        time.sleep(0.02)


def is_zombie(pid):
    """Ended, and nobody has asked how."""
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"


def children_of(pid):
    return [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
