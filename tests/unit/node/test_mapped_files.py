"""Which files a process has mapped, by the kernel's word."""

import mmap
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tessera.node.mapped_files import mapped_files, names_of_files

HOLD = """
import mmap, sys
with open(sys.argv[1], "r+b") as file:
    kept = mmap.mmap(file.fileno(), 0)
print("mapped", flush=True)
sys.stdin.read()
"""
END_MAIN_THREAD = """
import ctypes, threading, time
threading.Thread(target=time.sleep, args=(60,)).start()
print("ended", flush=True)
ctypes.CDLL(None).syscall(60, 0)
"""


def a_file(directory: Path, name: str) -> Path:
    path = directory / name
    path.write_bytes(bytes(mmap.PAGESIZE))
    return path


@contextmanager
def running(script: str, *arguments: str) -> Iterator[int]:
    """The process, once it has said something."""
    with subprocess.Popen(
        [sys.executable, "-c", script, *arguments], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as program:
        assert program.stdout
        assert program.stdout.readline()
        yield program.pid
        program.kill()


def test_a_process_has_what_it_has_mapped_and_has_closed_since(tmp_path: Path):
    one, other = a_file(tmp_path, "one"), a_file(tmp_path, "other")
    names = names_of_files([one, other])
    with running(HOLD, str(one)) as pid:
        files = mapped_files(pid)
    assert files
    assert names[one] in files
    assert names[other] not in files
    assert mapped_files(pid) is None, "it is gone"


@pytest.mark.parametrize("blank", ["\f", "\v", "\x1c", "\x85", "\u2028", "\r", "\n", " "])
def test_no_name_of_a_file_is_taken_for_another_file(tmp_path: Path, blank: str):
    target = a_file(tmp_path, "target")
    wanted = names_of_files([target])[target]
    forged = a_file(tmp_path, f"a{blank}0-1 r 0 {wanted} z")
    with running(HOLD, str(forged)) as pid:
        files = mapped_files(pid)
    assert files
    assert wanted not in files


def test_a_process_whose_first_thread_has_ended_cannot_be_seen():
    with running(END_MAIN_THREAD) as pid:
        while Path(f"/proc/{pid}/maps").read_bytes():
            pass
        assert mapped_files(pid) is None


def test_a_file_has_one_name_by_all_its_paths_and_another_than_others(tmp_path: Path):
    one, other, linked = a_file(tmp_path, "one"), a_file(tmp_path, "other"), tmp_path / "linked"
    os.link(one, linked)
    names = names_of_files([one, other, linked])
    assert names[one] == names[linked] != names[other]


def test_what_is_no_file_to_be_mapped_has_no_name(tmp_path: Path):
    (tmp_path / "empty").touch()
    (tmp_path / "link").symlink_to(a_file(tmp_path, "one"))
    os.mkfifo(tmp_path / "pipe")
    assert names_of_files(tmp_path / name for name in ("nowhere", "empty", "link", "pipe", ".")) == {}
