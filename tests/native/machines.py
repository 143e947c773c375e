"""Programs that look at simulated cards as any program looks at its driver, alone and as processes of a container."""

import os
import struct
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

from tessera.node.regions import Region, read_region
from tessera.vendors.simulated_driver import DIRECTORY_VARIABLE
from testbed.fixtures import require

ROOT = Path(__file__).parents[2]
LIBRARIES = ROOT / "build/native/sim"
LIBRARY = ROOT / "build/native/libtessera.so"
PROBES = ROOT / "build/native/probe"
TAKER = PROBES / "taker"
CONTEXT_MIB = 300
PATIENCE_S = 60
MIB = 1 << 20
SLOT = struct.Struct("=i4x64Q")
"""A process in the file `memory` of the simulated hardware."""


class Machine(NamedTuple):
    directory: Path
    uuids: list[str]

    def run(self, script: str, **environment: str) -> str:
        """What the program prints; it must end well."""
        program = self.start(script, **environment)
        output, _ = program.communicate(timeout=PATIENCE_S)
        assert program.returncode == 0, output
        return output.strip()

    def start(self, script: str, **environment: str) -> subprocess.Popen[str]:
        """`script` finds `cuda` and `alloc` ready, or whatever it imports."""
        return self.execute(self.python(script), **environment)

    def python(self, script: str) -> list[str]:
        return [sys.executable, "-c", f"from tests.native.looking import *\n{script}"]

    def execute(self, command: list[str], **environment: str) -> subprocess.Popen[str]:
        return subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            cwd=ROOT,
            env=os.environ | {DIRECTORY_VARIABLE: str(self.directory), "LD_LIBRARY_PATH": str(LIBRARIES)} | environment,
        )

    def worker(self, *words: object, **environment: str) -> subprocess.Popen[str]:
        """Keeps the first card busy: seconds, nanoseconds of a kernel, how many are under way, and in which mode."""
        return self.execute([str(PROBES / "worker"), *map(str, words)], **environment)

    def held_mib(self, card: int = 0) -> int:
        """What living processes hold, from the simulated hardware's own file."""
        slots = SLOT.iter_unpack((self.directory / "memory").read_bytes())
        return sum(slot[1 + card] for slot in slots if slot[0] and _lives(slot[0])) // MIB


def _lives(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


class Container(NamedTuple):
    """As the library sees one: cards, limits, and the file that its processes share."""

    machine: Machine
    directory: Path

    @property
    def limits(self) -> Path:
        return self.directory / "limits"

    @property
    def environment(self) -> dict[str, str]:
        return {
            "LD_PRELOAD": str(LIBRARY),
            "TESSERA_LIMITS": str(self.limits),
            "TESSERA_REGION": str(self.directory / "region"),
        }

    def limit(self, *memory_mib: int | str) -> None:
        """One limit for each card, in the words of the tile's file."""
        cards = zip(self.machine.uuids, memory_mib, strict=False)
        text = "".join(f"card {uuid} memory_mib {memory} cores_percent 0\n" for uuid, memory in cards)
        self.write(f"version 1\ntile 1234\n{text}")

    def write(self, text: str) -> None:
        whole = self.limits.with_suffix(".new")
        whole.write_text(text)
        whole.rename(self.limits)

    def run(self, script: str, **environment: str) -> str:
        return self.machine.run(script, **self.environment | environment)

    def start(self, script: str, **environment: str) -> subprocess.Popen[str]:
        return self.machine.start(script, **self.environment | environment)

    def taker(
        self, action: str, step_mib: int, *more: str, lookup: str = "dlsym", **environment: str
    ) -> subprocess.Popen[str]:
        program = TAKER.with_name("taker-linked") if lookup == "linked" else TAKER
        command = [str(program), lookup, action, str(step_mib), *more]
        return self.machine.execute(command, **self.environment | environment)

    def filled_mib(self, step_mib: int, **how: str) -> int:
        """What a program gets that takes until it is refused."""
        with self.taker("fill", step_mib, **how) as program:
            said, _ = program.communicate(timeout=PATIENCE_S)
        return int(said)


def region_at(path: Path) -> Region:
    """What the agent would read of a container that is there."""
    region = read_region(path)
    assert region is not None
    return region


def first_lines(programs: Iterable[subprocess.Popen[str]]) -> list[str]:
    """What each says first, while all are still there."""
    return [program.stdout.readline().strip() for program in programs if program.stdout]


def begin_race(programs: Iterable[subprocess.Popen[str]]) -> None:
    """Let those that have lined up go at once."""
    runners = list(programs)
    assert first_lines(runners) == ["ready"] * len(runners)
    for runner in runners:
        print(file=runner.stdin, flush=True)


def end(programs: Iterable[subprocess.Popen[str]]) -> None:
    for program in programs:
        program.kill()
        program.communicate(timeout=PATIENCE_S)


def require_namespaces() -> None:
    require(os.geteuid() == 0, "namespaces of processes need root")
