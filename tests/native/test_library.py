"""The library as a guest in other programs: it is in nobody's way, and runs wherever they run."""

import os
import re
import subprocess
import sys
from pathlib import Path

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


def test_the_library_needs_no_newer_c_library_than_2_17():
    versions = {tuple(map(int, found)) for found in VERSIONS.findall(LIBRARY.read_bytes())}
    assert versions
    assert max(versions) <= (2, 17)


def test_it_compiles_for_arm_too(tmp_path: Path):
    require(COMPILER.exists(), "there is no compiler in .zig; `make native` brings it")
    compiler = f"PYTHONPATH={COMPILER} {sys.executable} -m ziglang cc -target aarch64-linux-gnu.2.17"
    command = ["make", "-C", str(ROOT / "native"), f"CC={compiler}", f"OUT={tmp_path}", str(tmp_path / LIBRARY.name)]
    made = subprocess.run(command, capture_output=True, text=True, timeout=10 * PATIENCE_S, check=False)
    assert made.returncode == 0, made.stderr
    assert (tmp_path / LIBRARY.name).read_bytes()[18] == 0xB7, "the machine of the ELF header"
