"""The library as a guest in other programs: it is in nobody's way, and runs wherever they run."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from testbed.fixtures import require
from tests.native.machines import LIBRARY, PATIENCE_S, ROOT, TAKER

VERSIONS = re.compile(rb"GLIBC_(\d+)\.(\d+)")
COMPILER = ROOT / ".zig"


def test_a_program_without_cuda_is_left_alone(container):
    """Not even the names are there, which a program may ask for to see whether there is a driver."""
    script = "import ctypes; print(hasattr(ctypes.CDLL(None), 'cuMemAlloc_v2'), hasattr(ctypes.CDLL(None), 'dlsym'))"
    with container.machine.execute([sys.executable, "-c", script], **container.environment) as program:
        assert program.communicate(timeout=PATIENCE_S)[0] == "False True\n"
    assert not (container.directory / "region").exists()


def test_the_next_one_of_another_library_is_still_its_next_one(container):
    preload = f"{LIBRARY}:{TAKER.with_name('libnext.so')}"
    command = [sys.executable, "-c", "import ctypes; print(ctypes.CDLL(None).getpagesize())"]
    with container.machine.execute(command, **container.environment | {"LD_PRELOAD": preload}) as program:
        assert program.communicate(timeout=PATIENCE_S)[0] == f"{os.sysconf('SC_PAGESIZE') + 1}\n"


FOUND = {
    "dlsym": "library.dlsym",
    "dlsym by dlsym": 'library.dlsym(handle, b"dlsym")',
    "dlsym by dlvsym": 'next(filter(None, (library.dlvsym(handle, b"dlsym", one) for one in VERSIONS)))',
}


@pytest.mark.parametrize("found", FOUND.values(), ids=FOUND.keys())
def test_a_lookup_that_was_looked_up_is_no_way_past_it(container, found: str):
    container.limit(1_000)
    script = f"""
from ctypes import *
VERSIONS = (b"GLIBC_2.34", b"GLIBC_2.17", b"GLIBC_2.2.5")
library = CDLL("libc.so.6")
handle = c_void_p(library._handle)
library.dlsym.restype = library.dlvsym.restype = c_void_p
found = {found}
look_up = found if callable(found) else CFUNCTYPE(c_void_p, c_void_p, c_char_p)(found)
take = CFUNCTYPE(c_int, c_void_p, c_size_t)(look_up(c_void_p(cuda.library._handle), b"cuMemAlloc_v2"))
cuda.init(), cuda.enter()
print(take(byref(c_uint64()), 5_000 * MIB))
"""
    assert container.run(script) == "2"


def newest_c_library(library: Path) -> tuple[int, ...]:
    return max(tuple(map(int, found)) for found in VERSIONS.findall(library.read_bytes()))


def test_the_library_needs_no_newer_c_library_than_2_17():
    assert newest_c_library(LIBRARY) <= (2, 17)


@pytest.mark.parametrize(("target", "machine"), [("x86_64", 0x3E), ("aarch64", 0xB7)])
def test_it_compiles_for_each_machine_and_its_oldest_c_library(tmp_path: Path, target: str, machine: int):
    require(COMPILER.exists(), "there is no compiler in .zig; `make native` brings it")
    compiler = f"PYTHONPATH={COMPILER} {sys.executable} -m ziglang cc -target {target}-linux-gnu.2.17"
    made = tmp_path / LIBRARY.name
    command = ["make", "-C", str(ROOT / "native"), f"CC={compiler}", f"OUT={tmp_path}", str(made)]
    run = subprocess.run(command, capture_output=True, text=True, timeout=10 * PATIENCE_S, check=False)
    assert run.returncode == 0, run.stderr
    assert made.read_bytes()[18] == machine, "the machine of the ELF header"
    assert newest_c_library(made) <= (2, 17)
