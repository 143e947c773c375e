"""Tenants of a simulated card that keep it busy, and what each got of its time."""

import os
import subprocess
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from types import MappingProxyType
from typing import NamedTuple

import msgspec

from tessera.node.regions import RegionCard
from tests.native.machines import LIBRARY, PATIENCE_S, ROOT, Machine, region_at

WORKER = ROOT / "build/native/probe/worker"
WINDOW_NS = 100_000_000
WARM_WINDOWS = 5


class Report(msgspec.Struct, frozen=True):
    steps: int
    launches: int
    gpu_ns: int
    wall_ns: int
    windows: list[int]

    def percent(self, windows: slice = slice(WARM_WINDOWS, -1)) -> float:
        """Of the card's time, in these tenths of a second."""
        counted = self.windows[windows]
        return 100 * sum(counted) * (self.gpu_ns / max(1, self.steps)) / (len(counted) * WINDOW_NS)

    @property
    def whole_percent(self) -> float:
        """Of the card's time, from its beginning to its end."""
        return 100 * self.gpu_ns / self.wall_ns


class Tenant(NamedTuple):
    """A container with a share of the machine's first card, which it may have in common with others."""

    machine: Machine
    directory: Path

    @property
    def environment(self) -> dict[str, str]:
        return {
            "LD_PRELOAD": str(LIBRARY),
            "TESSERA_LIMITS": str(self.directory / "limits"),
            "TESSERA_REGION": str(self.directory / "region"),
            "TESSERA_CARDS": str(self.directory.parent / "cards"),
        }

    def limit(self, cores_percent: int | str, *lines: str) -> None:
        card = f"card {self.machine.uuids[0]} memory_mib 0 cores_percent {cores_percent}"
        whole = self.directory / "limits.new"
        whole.write_text("\n".join(("version 1", *lines, card, "")))
        whole.rename(self.directory / "limits")

    def work(
        self,
        seconds: float,
        microseconds: float,
        mode: str = "kernel",
        depth: int = 4,
        environment: Mapping[str, str] = MappingProxyType({}),
    ) -> subprocess.Popen[str]:
        command = [str(WORKER), str(seconds), str(int(microseconds * 1000)), str(depth), mode]
        return self.machine.execute(command, **self.environment | dict(environment))

    def crowd(
        self, seconds: float, microseconds: float, threads: int, batch: int = 1, think_us: float = 0
    ) -> subprocess.Popen[str]:
        """Threads that each launch a batch, wait for it and think."""
        words = (seconds, int(microseconds * 1000), threads, batch, int(think_us * 1000))
        return self.machine.execute([str(WORKER.with_name("crowd")), *map(str, words)], **self.environment)

    def start(self, script: str, **environment: str) -> subprocess.Popen[str]:
        return self.machine.start(f"from tests.native.launching import *\n{script}", **self.environment | environment)

    def run(self, script: str, **environment: str) -> str:
        program = self.start(script, **environment)
        output, _ = program.communicate(timeout=PATIENCE_S)
        assert program.returncode == 0, output
        return output.strip()

    def told(self) -> RegionCard:
        """What the agent is told of the first card."""
        return region_at(self.directory / "region").cards[0]


def favour(program: subprocess.Popen[str]) -> None:
    """Give it a processor before others, where that may be asked."""
    with suppress(PermissionError):
        os.sched_setscheduler(program.pid, os.SCHED_FIFO, os.sched_param(1))


def report_of(program: subprocess.Popen[str]) -> Report:
    output, _ = program.communicate(timeout=PATIENCE_S)
    assert program.returncode == 0, output
    return msgspec.json.decode(output.splitlines()[-1], type=Report)
