"""Control groups of containers, where this machine lets us make them: memory limits, and ends that nothing escapes.

Both layouts are served: the unified one, and the older one with a tree for memory beside it. A group is made below our
own, or beside it where ours cannot have children with a controller, as in a desktop session. Root may do so everywhere,
others where the tree was delegated to them. Where neither works there are no groups, and limits of memory are not kept.
"""

import errno
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path

import msgspec
import structlog

log: structlog.stdlib.BoundLogger = structlog.get_logger(__name__)


class Tree(msgspec.Struct, frozen=True):
    """One mounted tree, our own group in it, and what the files there are called."""

    own: Path
    top: Path
    is_unified: bool

    @property
    def limit_file(self) -> str:
        return "memory.max" if self.is_unified else "memory.limit_in_bytes"

    @property
    def outcome_file(self) -> str:
        """It has a line that counts the processes killed for want of memory."""
        return "memory.events" if self.is_unified else "memory.oom_control"


class Group(msgspec.Struct, frozen=True):
    """The group of one container: a directory in each tree."""

    places: tuple[tuple[Tree, Path], ...] = ()

    @property
    def process_files(self) -> list[str]:
        return [str(path / "cgroup.procs") for _, path in self.places]

    @property
    def kill_files(self) -> list[str]:
        return [str(path / "cgroup.kill") for _, path in self.places if (path / "cgroup.kill").exists()]

    def was_out_of_memory(self) -> bool:
        return any(_count_kills(path / tree.outcome_file) for tree, path in self.places)

    def remove(self) -> None:
        for _, path in self.places:
            _remove(path)


class Cgroups:
    def __init__(self, bases: Sequence[tuple[Tree, Path]]) -> None:
        self._bases = tuple(bases)

    @classmethod
    def find(cls, name: str) -> "Cgroups":
        """`name` is the runtime's. What a former one left there is ended and removed."""
        bases: list[tuple[Tree, Path]] = []
        for tree in read_trees(Path("/proc/self/cgroup").read_text(), Path("/proc/self/mountinfo").read_text()):
            base = _make_base(tree, f"tessera-{name}")
            if base is not None:
                bases.append((tree, base))
                for left in base.iterdir():
                    if left.is_dir():
                        _remove(left)
        return cls(bases)

    @property
    def limits_memory(self) -> bool:
        return any((base / tree.limit_file).exists() for tree, base in self._bases)

    def make(self, name: str, *, memory_bytes: int | None) -> Group:
        places = tuple((tree, base / name) for tree, base in self._bases)
        for tree, path in places:
            path.mkdir(exist_ok=True)
            if memory_bytes and (path / tree.limit_file).exists():
                (path / tree.limit_file).write_text(str(memory_bytes))
                with suppress(OSError):  # without swap there is nothing to forbid
                    (path / "memory.swap.max").write_text("0")
                    (path / "memory.oom.group").write_text("1")
        return Group(places)

    def remove(self) -> None:
        for _, base in self._bases:
            _remove(base)


def read_trees(memberships: str, mounts: str) -> Iterator[Tree]:
    """Those that matter here, from what /proc says of this process's groups and mounts."""
    paths: dict[str, str] = {}
    for line in memberships.splitlines():
        _, controllers, path = line.split(":", 2)
        for controller in controllers.split(","):
            paths[controller] = path
    for line in mounts.splitlines():
        fields, _, rest = line.partition(" - ")
        kind, _, options = rest.split()
        root, point = fields.split()[3:5]
        controller = "memory" if "memory" in options.split(",") else ""
        if kind == "cgroup2" or (kind == "cgroup" and controller):
            below = paths.get(controller if kind == "cgroup" else "", "/").removeprefix(root.rstrip("/"))
            yield Tree(Path(point) / below.lstrip("/"), Path(point), kind == "cgroup2")


def _make_base(tree: Tree, name: str) -> Path | None:
    """The unified tree permits no processes in a group whose children have controllers, hence two tries."""
    found: Path | None = None
    for parent in (tree.own, tree.own.parent):
        if not parent.is_relative_to(tree.top):
            break
        base = parent / name
        with suppress(OSError):
            base.mkdir(exist_ok=True)
            if tree.is_unified:
                _pass_on_memory(parent)
                _pass_on_memory(base)
            found = found or base
            if (base / tree.limit_file).exists():
                return base
    return found


def _pass_on_memory(group: Path) -> None:
    with suppress(OSError):
        if "memory" in (group / "cgroup.controllers").read_text().split():
            (group / "cgroup.subtree_control").write_text("+memory")


def _count_kills(path: Path) -> int:
    with suppress(OSError):
        counts = dict(line.split() for line in path.read_text().splitlines())
        return int(counts.get("oom_kill", 0))
    return 0


def _remove(path: Path) -> None:
    with suppress(FileNotFoundError):
        for inner in path.iterdir():
            if inner.is_dir():
                _remove(inner)
        with suppress(OSError):
            (path / "cgroup.kill").write_text("1")
        try:
            path.rmdir()
        except OSError as error:
            if error.errno != errno.ENOENT:
                log.warning("control group not removed", path=str(path), error=str(error))
