"""One engine for all of these tests, which has no MPI of its own: each job names the one that it runs with."""

import os
import sys
from collections.abc import Iterator
from pathlib import Path
from uuid import uuid4

import pytest

from testbed.building import Programs
from testbed.fixtures import require_testbed
from testbed.mpi import NAMES, Mpi, install_mpi
from tests.contract.command_line import CommandLine
from tests.contract.waiting import eventually
from tests.embedded.whole_engine import WholeEngine
from tests.mpi.jobs import RANKS_PROGRAM, MpiJobs

TIMEOUT_S = 180
WITHOUT_MPI = "/usr/bin:/bin"
TRIED = [name for name in NAMES if name != "openmpi5" or os.environ.get("TESSERA_OPENMPI5")]
"""Open MPI 5 hangs by itself at one start in some fifty, whatever is done around it."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Give each test its time without the engine's: the first one may have to wait until MPI is fetched."""
    for item in items:
        if Path(__file__).parent in item.path.parents:
            item.add_marker(pytest.mark.timeout(TIMEOUT_S, func_only=True))


@pytest.fixture(scope="package")
def mpi_engine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[WholeEngine]:
    require_testbed()
    engine = WholeEngine(
        tmp_path_factory.mktemp("mpi"),
        "--nodes",
        "2",
        "--cards",
        "2xA100-SXM4-80GB",
        environment={"PATH": WITHOUT_MPI},
    )
    with engine.running():
        yield engine


@pytest.fixture(scope="package")
def kubectl(mpi_engine: WholeEngine, tmp_path_factory: pytest.TempPathFactory) -> CommandLine:
    return CommandLine(Programs()["kubectl"], mpi_engine.kubeconfig, tmp_path_factory.mktemp("kubectl"))


@pytest.fixture
def jobs(kubectl: CommandLine) -> Iterator[MpiJobs]:
    """In a namespace of the test's own."""
    name = f"mpi-{uuid4().hex[:8]}"
    kubectl("create", "namespace", name)
    eventually(lambda: "default" in kubectl("get", "sa", "-n", name, "-o", "name"))
    yield MpiJobs(kubectl.within(name))
    kubectl("delete", "namespace", name, "--wait=false")


@pytest.fixture(scope="session", params=TRIED)
def mpi(request: pytest.FixtureRequest) -> Mpi:
    """Debian's, and Open MPI 5 where it is asked for."""
    require_testbed()
    return install_mpi(request.param)


@pytest.fixture(scope="session")
def open_mpi() -> Mpi:
    require_testbed()
    return install_mpi("openmpi")


def path_with(mpi: Mpi) -> dict[str, str]:
    return {"PATH": f"{mpi.programs}:{WITHOUT_MPI}"}


def mpirun(mpi: Mpi, ranks: int, what: str) -> list[str]:
    """The command of a launcher that runs our program."""
    return ["mpirun", "-np", str(ranks), sys.executable, RANKS_PROGRAM, mpi.library, what]
