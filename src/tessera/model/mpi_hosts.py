"""How the pods of an MPIJob on this machine find each other: what the controller tells them, and what they tell it.

The controller puts these variables into launcher and workers. The board is a directory of the job: in it the controller
says what became of each worker, and each worker says which ranks it has seen.
"""

from collections.abc import Mapping

JOB = "TESSERA_MPI_JOB"
"""The job's UID: pods of another job of the same name, earlier or later, are not met."""
BOARD = "TESSERA_MPI_BOARD"
HOST = "TESSERA_MPI_HOST"
"""The name under which a worker is entered, which is its pod's."""

ENTER, HOST_PROGRAM = "tessera-mpi-enter", "tessera-mpi-host"
"""What mpirun calls in the place of ssh, and what a worker runs in the place of sshd."""
RANKS_RAN_ON = "tessera.io/ranks-ran-on"
"""On the MPIJob: how many ranks each worker had, at the least."""
FIRST_POD_NAME = "tessera.io/first-pod-name"
"""On a Job of the embedded engine: what its first pod is called."""

TOKEN_FILE = "token"
"""Of the board: what pods of the job know each other by. Not in a variable, which a rank may print."""
HOSTS_FILE = "hosts"
"""Of the board: the names of all workers of the job, one on each line."""
FAILED, RUNNING = "Failed", "Running"
LOCATIONS = ("LD_LIBRARY_PATH", "OPAL_", "PMIX_INSTALL_PREFIX", "PRTE_PREFIX", "MPI_HOME", "I_MPI_ROOT")
"""How variables begin that say where MPI lies. Whoever has not the same ones finds another MPI, or none."""


def locations(environment: Mapping[str, str]) -> dict[str, str]:
    return {name: value for name, value in environment.items() if name.startswith(LOCATIONS)}


def state_file(worker: str) -> str:
    """Of the board: the phase of the worker's pod on the first line, and why on the second."""
    return f"{worker}.state"


def ranks_file(worker: str) -> str:
    """Of the board: JSON, the `ranks` that were seen, and whether any may have been `missed`. Absent, nobody came."""
    return f"{worker}.ranks"
