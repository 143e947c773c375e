"""A program for the ranks of an MPIJob: `python ranks.py LIBRARY allreduce|train`, with any MPI and no compiler.

It speaks to the library of MPI as C programs do. Open MPI names the world by the address of an object, MPICH by a
number; both are as their headers have them.
"""

import ctypes
import os
import socket
import sys
from typing import Any

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
MPICH_WORLD, MPICH_DOUBLE, MPICH_SUM = 0x44000000, 0x4C00080B, 0x58000003
ROWS, FEATURES, STEPS, RATE = 240, 5, 50, 0.1


class World:
    """All ranks of the job."""

    def __init__(self, library: str) -> None:
        self._mpi = ctypes.CDLL(library, mode=ctypes.RTLD_GLOBAL)
        self._mpi.MPI_Init(None, None)
        self._world, self._double, self._sum = self._constants()
        self.rank, self.size = self._ask("MPI_Comm_rank"), self._ask("MPI_Comm_size")

    def sum(self, own: Floats) -> Floats:
        """Over all ranks."""
        total = np.empty_like(own)
        count = ctypes.c_int(own.size)
        code = self._mpi.MPI_Allreduce(
            own.ctypes.data_as(ctypes.c_void_p),
            total.ctypes.data_as(ctypes.c_void_p),
            count,
            self._double,
            self._sum,
            self._world,
        )
        assert code == 0, f"MPI_Allreduce returned {code}"
        return total

    def end(self) -> None:
        self._mpi.MPI_Finalize()

    def _constants(self) -> tuple[Any, Any, Any]:
        if not hasattr(self._mpi, "ompi_mpi_comm_world"):
            return ctypes.c_int(MPICH_WORLD), ctypes.c_int(MPICH_DOUBLE), ctypes.c_int(MPICH_SUM)
        names = ("ompi_mpi_comm_world", "ompi_mpi_double", "ompi_mpi_op_sum")
        world, double, total = (ctypes.byref(ctypes.c_char.in_dll(self._mpi, name)) for name in names)
        return world, double, total

    def _ask(self, question: str) -> int:
        answer = ctypes.c_int()
        getattr(self._mpi, question)(self._world, ctypes.byref(answer))
        return answer.value


class Alone:
    """What training is compared with: one process that has all the data."""

    rank, size = 0, 1

    def sum(self, own: Floats) -> Floats:
        return own


def train(world: World | Alone) -> Floats:
    """The weights of a linear regression; each rank knows a part of the data only."""
    chance = np.random.default_rng(7)
    inputs, truth = chance.normal(size=(ROWS, FEATURES)), chance.normal(size=FEATURES)
    targets = inputs @ truth + 0.01 * chance.normal(size=ROWS)
    own_inputs, own_targets = inputs[world.rank :: world.size], targets[world.rank :: world.size]
    weights = np.zeros(FEATURES)
    for _ in range(STEPS):
        slope = own_inputs.T @ (own_inputs @ weights - own_targets)
        weights = weights - RATE * world.sum(slope) / ROWS
    return weights


def main() -> None:
    library, what = sys.argv[1:]
    world = World(library)
    if what == "train":
        found = " ".join(f"{weight:.12f}" for weight in train(world))
    else:
        found = f"{world.sum(np.array([world.rank + 1.0]))[0]:g}"
    role = os.environ.get("K_MPI_JOB_ROLE")
    # One write: the lines of several ranks meet in one log.
    os.write(1, f"rank {world.rank} of {world.size} on {socket.gethostname()} as {role} found {found}\n".encode())
    world.end()


if __name__ == "__main__":
    main()
