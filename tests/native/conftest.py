"""A machine of simulated cards, and programs that look at it as any program looks at its driver."""

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import NamedTuple

import pytest

from tessera.vendors.loading import load_catalogue
from tessera.vendors.simulated import parse_plan, simulate
from tessera.vendors.simulated_driver import DIRECTORY_VARIABLE, write_cards
from testbed.fixtures import require

ROOT = Path(__file__).parents[2]
LIBRARIES = ROOT / "build/native/sim"
CONTEXT_MIB = 300
PATIENCE_S = 60


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
        return subprocess.Popen(
            [sys.executable, "-c", f"from tests.native.looking import *\n{script}"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            cwd=ROOT,
            env=os.environ | {DIRECTORY_VARIABLE: str(self.directory), "LD_LIBRARY_PATH": str(LIBRARIES)} | environment,
        )


@pytest.fixture(scope="session", autouse=True)
def _built() -> None:
    require((LIBRARIES / "libcuda.so.1").exists(), "the simulated driver is not built; `make native` does it")


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    """Four cards of 16 GiB."""
    devices = simulate("here", parse_plan("4xT4"), load_catalogue()).devices
    write_cards(tmp_path / "sim", devices, context_mib=CONTEXT_MIB)
    return Machine(tmp_path / "sim", [device.uuid for device in devices])


@pytest.fixture
def holding(machine: Machine) -> Iterator[Callable[..., subprocess.Popen[str]]]:
    """Programs that have taken memory of the first card, until they are ended."""
    with ExitStack() as stack:

        def start(mib: int, **environment: str) -> subprocess.Popen[str]:
            program = machine.start(f"print(alloc({mib}), flush=True)\ninput()", **environment)
            stack.callback(_end, program)
            assert program.stdout
            assert program.stdout.readline() == "0\n"
            return program

        yield start


def _end(program: subprocess.Popen[str]) -> None:
    program.kill()
    program.communicate(timeout=PATIENCE_S)
