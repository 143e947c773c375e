"""Builds the testbed's programs once per version and keeps them outside the tree.

What is kept under is worked out from everything that goes in: the Go toolchain, go.mod, go.sum and the flags. A build
happens in a directory of its own that is renamed when complete, under a lock, so nobody ever runs half a program.
"""

import fcntl
import hashlib
import os
import shutil
import subprocess
import sys
import time
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from testbed.requirements import TestbedFailed
from testbed.toolchain import ALL, Tool

SHOW_EVERY_S = 15


def cache_directory() -> Path:
    base = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return base / "tessera" / "testbed"


class Programs:
    """Paths of the built programs; each tool is built when one of its programs is first asked for."""

    def __init__(self, cache: Path | None = None) -> None:
        self._cache = (cache or cache_directory()) / "programs"
        self._tool_of = {program: tool for tool in ALL for program in tool.programs}
        self._directories: dict[str, Path] = {}

    def __getitem__(self, program: str) -> Path:
        tool = self._tool_of[program]
        if tool.name not in self._directories:
            self._directories[tool.name] = build(tool, self._cache)
        return self._directories[tool.name] / program

    def build(self, *programs: str) -> None:
        """Have these programs ready, and those built with them; all there are, where none is named."""
        for program in programs or self._tool_of:
            self[program]

    def version(self, program: str) -> str:
        return self._tool_of[program].version

    @property
    def search_path(self) -> str:
        """The directories of all tools that were built so far, for PATH."""
        return ":".join(str(directory) for directory in self._directories.values())


def build(tool: Tool, cache: Path) -> Path:
    """The directory with the tool's programs, built if they are not there yet."""
    target = cache / f"{tool.name}-{tool.version}-{_fingerprint(tool)}"
    if target.is_dir():
        return target
    cache.mkdir(parents=True, exist_ok=True)
    with locked(cache / f"{tool.name}.lock"):
        if not target.is_dir():
            _build_into(tool, target)
    return target


def _build_into(tool: Tool, target: Path) -> None:
    print(f"Building {tool.name} {tool.version} …", file=sys.stderr, flush=True)
    began, unfinished = time.monotonic(), target.parent / f".{target.name}"
    shutil.rmtree(unfinished, ignore_errors=True)
    unfinished.mkdir()
    for number, (program, package) in enumerate(tool.programs.items(), 1):
        _go_build(tool, package, unfinished / program)
        step = f"{number}/{len(tool.programs)} {program}"
        print(f"  {step}, after {time.monotonic() - began:.0f} s", file=sys.stderr, flush=True)
    for file in tool.files:
        shutil.copy(_module_directory(tool) / file, unfinished)
    unfinished.rename(target)


def _go_build(tool: Tool, package: str, output: Path) -> None:
    flags = ["-v", "-trimpath", "-buildvcs=false", "-ldflags", tool.linker_flags, "-tags", ",".join(tool.tags)]
    _go(tool, "build", *flags, "-o", str(output), package)


def _go(tool: Tool, *arguments: str) -> str:
    """What go prints. It names each module it fetches and each package it compiles, which is shown now and then."""
    said, shown_at = deque[str](maxlen=15), time.monotonic()
    with subprocess.Popen(
        ["go", *arguments],
        cwd=tool.directory,
        env=_go_environment(),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as go:
        assert go.stdout is not None
        assert go.stderr is not None
        for line in go.stderr:
            said.append(line.rstrip())
            if time.monotonic() - shown_at > SHOW_EVERY_S:
                print(f"    {said[-1]}", file=sys.stderr, flush=True)
                shown_at = time.monotonic()
        printed = go.stdout.read()
    if go.returncode:
        what = f"`go {arguments[0]} … {arguments[-1]}` for {tool.name} {tool.version}"
        raise TestbedFailed(f"{what} ended with exit code {go.returncode}:\n" + "\n".join(said))
    return printed


def _module_directory(tool: Tool) -> Path:
    return Path(_go(tool, "list", "-m", "-f", "{{.Dir}}", tool.module).strip())


def _go_environment() -> dict[str, str]:
    return os.environ | {"CGO_ENABLED": "0", "GOFLAGS": "-mod=readonly", "GOWORK": "off"}


def _fingerprint(tool: Tool) -> str:
    parts = [
        _go(tool, "env", "GOVERSION", "GOARCH"),
        tool.linker_flags,
        ",".join(tool.tags),
        str(sorted(tool.programs.items())),
        *tool.files,
    ]
    parts += [(tool.directory / name).read_text() for name in ("go.mod", "go.sum")]
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()[:12]


@contextmanager
def locked(path: Path) -> Iterator[None]:
    with path.open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield
