"""Which files a process has mapped, by the kernel's word."""

import mmap
import os
import subprocess
import sys
from pathlib import Path

from tessera.node.mapped_files import has_mapped, name_of_file

HOLD = """
import mmap, sys
with open(sys.argv[1], "r+b") as file:
    kept = mmap.mmap(file.fileno(), 0)
print("mapped", flush=True)
sys.stdin.read()
"""


def a_file(directory: Path, name: str) -> Path:
    path = directory / name
    path.write_bytes(bytes(mmap.PAGESIZE))
    return path


def test_a_process_has_what_it_has_mapped_and_has_closed_since(tmp_path: Path):
    one, other = a_file(tmp_path, "one"), a_file(tmp_path, "other")
    with subprocess.Popen(
        [sys.executable, "-c", HOLD, str(one)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as program:
        assert program.stdout
        assert program.stdout.readline() == "mapped\n"
        assert has_mapped(program.pid, one) is True
        assert has_mapped(program.pid, other) is False
        program.communicate()
    assert has_mapped(program.pid, one) is None, "it is gone"


def test_a_file_has_one_name_by_all_its_paths_and_another_than_others(tmp_path: Path):
    one, other = a_file(tmp_path, "one"), a_file(tmp_path, "other")
    os.link(one, tmp_path / "linked")
    assert name_of_file(one) == name_of_file(tmp_path / "linked") != name_of_file(other)


def test_what_is_no_file_to_be_mapped_has_no_name(tmp_path: Path):
    (tmp_path / "empty").touch()
    (tmp_path / "link").symlink_to(a_file(tmp_path, "one"))
    os.mkfifo(tmp_path / "pipe")
    for name in ("nowhere", "empty", "link", "pipe", "."):
        assert name_of_file(tmp_path / name) is None
    assert has_mapped(os.getpid(), tmp_path / "nowhere") is None
