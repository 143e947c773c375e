"""A machine of simulated cards, and programs that look at it as any program looks at its driver."""

import subprocess
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from tessera.vendors.loading import load_catalogue
from tessera.vendors.simulated import parse_plan, simulate
from tessera.vendors.simulated_driver import write_cards
from testbed.fixtures import require
from tests.native.machines import CONTEXT_MIB, LIBRARIES, LIBRARY, PATIENCE_S, Container, Machine
from tests.native.working import Tenant


@pytest.fixture(scope="session", autouse=True)
def _built() -> None:
    is_built = (LIBRARIES / "libcuda.so.1").exists() and LIBRARY.exists()
    require(is_built, "the simulated driver and the library are not built; `make native` does it")


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    """Four cards of 16 GiB."""
    devices = simulate("here", parse_plan("4xT4"), load_catalogue()).devices
    write_cards(tmp_path / "sim", devices, context_mib=CONTEXT_MIB)
    return Machine(tmp_path / "sim", [device.uuid for device in devices])


@pytest.fixture
def container(machine: Machine, tmp_path: Path) -> Container:
    """Without limits, until it is given some."""
    return Container(machine, tmp_path)


@pytest.fixture
def tenant(machine: Machine, tmp_path: Path) -> Tenant:
    """Of the machine's first card, with another one beside it."""
    (tmp_path / "cards").mkdir(exist_ok=True)
    (tmp_path / "tenant").mkdir()
    return Tenant(machine, tmp_path / "tenant")


@pytest.fixture
def neighbour(tenant: Tenant) -> Tenant:
    directory = tenant.directory.with_name("neighbour")
    directory.mkdir()
    return Tenant(tenant.machine, directory)


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
