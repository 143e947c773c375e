"""`horovodrun` for a machine without Horovod's launcher: the same words, said to this machine's mpirun.

What it says about hosts is left to the job's hostfile unless `-H` or `--hostfile` is given. Programs that use Horovod
find their ranks by MPI; programs that do not run as they are.
"""

import os
import shlex
import sys
from typing import NoReturn

ON_OR_OFF = (
    "autotune",
    "hierarchical-allreduce",
    "hierarchical-allgather",
    "mpi-threads-disable",
    "stall-check",
    "timeline-mark-cycles",
)
FLAGS = frozenset(
    {"--verbose", "--mpi", "--gloo", "--jsrun", "--tcp", "--disable-cache", "--prefix-output-with-timestamp"}
    | {"--log-with-timestamp", "--log-without-timestamp", "--log-hide-timestamp"}
    | {f"--{no}{name}" for name in ON_OR_OFF for no in ("", "no-")}
)
"""Options of Horovod's own that have no value."""
MISUSED = 2


class Misused(Exception):
    pass


def translate(arguments: list[str]) -> list[str]:
    """The words after `mpirun`. Options that mean nothing to it are left out with their values."""
    words: list[str] = []
    rest = list(arguments)
    while rest and rest[0].startswith("-"):
        option, has_value, value = rest.pop(0).partition("=")
        if option in FLAGS:
            continue
        if not has_value:
            if not rest:
                raise Misused(f"{option} has no value, expected one")
            value = rest.pop(0)
        if option in ("-np", "-n", "--num-proc"):
            words += ["-np", value]
        elif option in ("-H", "--hosts"):
            words += ["-H", value]
        elif option in ("-hostfile", "--hostfile"):
            words += ["--hostfile", value]
        elif option in ("--mpi-args", "--binding-args"):
            words += _split(option, value)
    if not rest:
        raise Misused("there is no program to run, expected `horovodrun -np 2 python train.py`")
    return [*words, *rest]


def _split(option: str, value: str) -> list[str]:
    try:
        return shlex.split(value)
    except ValueError as error:
        raise Misused(f"{option} is {value!r}, expected words for mpirun: {error}") from error


def main() -> None:
    try:
        words = translate(sys.argv[1:])
    except Misused as error:
        fail(str(error))
    os.execvp("mpirun", ["mpirun", *words])


def fail(sentence: str) -> NoReturn:
    sys.stderr.write(f"horovodrun: {sentence}\n")
    sys.exit(MISUSED)
