"""The operators in the embedded engine. Our kinds are installed at each start, as the chart does it for a cluster.

Pods share the host's network here, so the server of a Compute listens on the address of its own pod. There is no DNS,
and nothing pulls images: one that is not known stays so until somebody adds it. Pods have the rights of whoever started
the engine, so they may share any directory that those reach.

MPIJobs are ours to run here, and here only: on a cluster that is the MPI operator's.
"""

import os
import sys
from pathlib import Path

from tessera.apps.working import Work
from tessera.embedded.runtime.ranks.programs import write_programs
from tessera.kube.client import Client
from tessera.kube.events import Recorder
from tessera.model.catalogue import Catalogue
from tessera.model.definitions import load_local_definitions
from tessera.model.mpi_hosts import locations
from tessera.operators.compute_children import ComputeSettings
from tessera.operators.compute_running import ComputeOperator
from tessera.operators.installing import install_definitions
from tessera.operators.mpi_board import Boards
from tessera.operators.mpi_running import MpiOperator
from tessera.operators.mpi_templates import MpiSettings
from tessera.operators.running import Operator

COMPONENT = "tessera-operator"
MANAGER = "tessera-up"
COMPUTES_HERE = ComputeSettings(
    host_field="status.podIP", cluster_domain="", patience_s=3.0, host_paths=("/",), has_claims=False
)


class EmbeddedOperators:
    """`works` belong in a TaskGroup of the caller; `install` comes before them and before whoever reads our kinds."""

    def __init__(self, client: Client, catalogue: Catalogue, directory: Path) -> None:
        self._client = client
        self._directory = directory
        self._recorder = Recorder(client, component=COMPONENT)
        self._operator = Operator(client, self._recorder)
        self._computes = ComputeOperator(client, self._recorder, catalogue, settings=COMPUTES_HERE)
        self._mpi_jobs: MpiOperator | None = None

    async def install(self, *, shows_mounts: bool) -> None:
        """`shows_mounts` says whether volumes are where pods look for them."""
        self._mpi_jobs = self._furnish_mpi(shows_mounts)
        await install_definitions(self._client, MANAGER, load_local_definitions())

    def works(self) -> list[Work]:
        assert self._mpi_jobs is not None, "install comes first"
        parts = (self._operator, self._computes, self._mpi_jobs)
        return [self._recorder.run(), *(work for part in parts for work in part.works())]

    def _furnish_mpi(self, shows_mounts: bool) -> MpiOperator:
        programs = write_programs(self._directory / "programs", sys.executable)
        boards = Boards(self._directory / "boards")
        boards.open()
        settings = MpiSettings(
            first=str(programs.first),
            last=str(programs.last),
            boards=str(self._directory / "boards"),
            shows_mounts=shows_mounts,
            locations=locations(os.environ),
        )
        return MpiOperator(self._client, self._recorder, boards, settings)
