"""How long it takes from handing in an MPIJob of four workers until its ranks run, on the embedded engine.

The clock starts before the request, and each rank writes down when it came. Floor, in the same run: the same mpirun
with four ranks on this machine, without a job around it.
"""

import asyncio
import os
import statistics
import subprocess
import tempfile
import time
from pathlib import Path
from uuid import uuid4

from benchmarks.embedded_start import CARDS, TESSERA, stop
from tessera.kube.access import find_access
from tessera.kube.client import Client
from tessera.kube.objects import Document
from tessera.operators.mpi_objects import MPI_JOB_DOCUMENTS
from testbed.mpi import Mpi, install_mpi

WORKERS, ROUNDS = 4, 10
WANTED_S = 3.0
LOOK_AGAIN_S = 0.01
NOTE = "cd {folder}; r=$OMPI_COMM_WORLD_RANK$PMI_RANK; date +%s.%N > $r.part && mv $r.part $r"
AS_ROOT = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
MORE_THAN_CORES = {"OMPI_MCA_rmaps_base_oversubscribe": "1"}


def main() -> None:
    print(
        f"an MPIJob of {WORKERS} workers                       first rank: median s    worst s    last rank: median s"
    )
    with tempfile.TemporaryDirectory() as directory:
        state = Path(directory) / "state"
        up = [*TESSERA, "up", "--detach", f"--state-dir={state}", "--nodes=4", f"--cards={CARDS}"]
        subprocess.run(up, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        try:
            for mpi in map(install_mpi, ("openmpi", "mpich")):
                report(f"floor: mpirun of {mpi.name} alone", [run_alone(mpi, Path(directory)) for _ in range(ROUNDS)])
                report(f"{mpi.name} (<= {WANTED_S})", asyncio.run(run_jobs(mpi, state / "kubeconfig", Path(directory))))
        finally:
            stop(state)


def run_alone(mpi: Mpi, directory: Path) -> list[float]:
    """When each rank came, from the start of mpirun."""
    folder = Path(tempfile.mkdtemp(dir=directory))
    environment = {**os.environ, **AS_ROOT, **MORE_THAN_CORES, "PATH": path_with(mpi)}
    began = time.time()
    command = ["mpirun", "-np", str(WORKERS), "sh", "-c", NOTE.format(folder=folder)]
    subprocess.run(command, env=environment, check=True, capture_output=True)
    return read_times(folder, began)


async def run_jobs(mpi: Mpi, kubeconfig: Path, directory: Path) -> list[list[float]]:
    async with Client(find_access(kubeconfig)) as client:
        return [await run_job(client, mpi, Path(tempfile.mkdtemp(dir=directory))) for _ in range(ROUNDS)]


async def run_job(client: Client, mpi: Mpi, folder: Path) -> list[float]:
    job = make_job(f"start-{uuid4().hex[:8]}", mpi, NOTE.format(folder=folder))
    began = time.time()
    await client.create(MPI_JOB_DOCUMENTS, job, namespace="default")
    while len(read_times(folder, began)) < WORKERS:
        await asyncio.sleep(LOOK_AGAIN_S)
    await client.delete(MPI_JOB_DOCUMENTS, job["metadata"]["name"], namespace="default")
    return read_times(folder, began)


def make_job(name: str, mpi: Mpi, script: str) -> Document:
    env = [{"name": "PATH", "value": path_with(mpi)}]
    command = ["mpirun", "-np", str(WORKERS), "sh", "-c", script]
    launcher = {"name": "launcher", "image": "any", "command": command, "env": env}
    worker = {"name": "worker", "image": "any", "env": env}
    return {
        "metadata": {"name": name},
        "spec": {
            "runPolicy": {"cleanPodPolicy": "Running"},
            "mpiReplicaSpecs": {
                "Launcher": {"template": {"spec": {"containers": [launcher]}}},
                "Worker": {"replicas": WORKERS, "template": {"spec": {"containers": [worker]}}},
            },
        },
    }


def path_with(mpi: Mpi) -> str:
    return f"{mpi.programs}:{os.environ['PATH']}"


def read_times(folder: Path, began: float) -> list[float]:
    """In seconds since then, the first rank first."""
    return sorted(float(path.read_text()) - began for path in folder.iterdir() if path.suffix != ".part")


def report(what: str, rounds: list[list[float]]) -> None:
    first, last = [times[0] for times in rounds], [times[-1] for times in rounds]
    median, slowest = statistics.median(first), statistics.median(last)
    print(f"  {what:50} {median:16.2f} {max(first):10.2f} {slowest:22.2f}", flush=True)


if __name__ == "__main__":
    main()
