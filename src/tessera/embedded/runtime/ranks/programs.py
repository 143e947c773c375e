"""The programs that pods of MPIJobs find on this machine, written as small scripts into two folders.

`first` goes before what the machine has, `last` behind it: there is what images usually bring, and words for what is
missing. Scripts, because a path of an interpreter may be longer than the kernel reads, or have blanks in it.
"""

import shlex
from pathlib import Path
from typing import NamedTuple

from tessera.embedded.runtime.process import PACKAGES
from tessera.files import put_whole
from tessera.model.mpi_hosts import ENTER, HOST_PROGRAM

OURS = {ENTER: "agent", HOST_PROGRAM: "host", "horovodrun": "horovodrun"}
LAUNCHERS_OF_MPI = ("mpirun", "mpiexec")
RUN = "import sys; sys.path.insert(0, {packages!r}); from tessera.embedded.runtime.ranks.{module} import main; main()"
NO_MPI = "no MPI on this machine: install Open MPI or MPICH, such as Debian's openmpi-bin, and the job finds it in PATH"


class Programs(NamedTuple):
    first: Path
    last: Path


def write_programs(directory: Path, python: str) -> Programs:
    """`python` is the interpreter that Tessera runs in."""
    programs = Programs(directory / "first", directory / "last")
    for folder in programs:
        folder.mkdir(parents=True, exist_ok=True)
    for name, module in OURS.items():
        run = RUN.format(packages=PACKAGES, module=module)
        _write(programs.first / name, f'exec {shlex.quote(python)} -I -S -c {shlex.quote(run)} "$@"')
    _write(programs.last / "python", f'exec {shlex.quote(python)} "$@"')
    for name in LAUNCHERS_OF_MPI:
        _write(programs.last / name, f"echo {shlex.quote(f'{name}: {NO_MPI}')} >&2; exit 127")
    return programs


def _write(path: Path, line: str) -> None:
    put_whole(path, f"#!/bin/sh\n{line}\n".encode(), mode=0o755)
