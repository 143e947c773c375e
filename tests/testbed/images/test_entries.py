import os
import socket
from pathlib import Path

import pytest

from testbed.images.entries import Directory, Entry, File, Symlink, entries_of, gather
from testbed.images.errors import ImageFailed


@pytest.mark.parametrize("path", ["../etc/passwd", "/etc/passwd", "etc/../../x", "etc/", "", ".", "a/./b", "a\0b"])
def test_a_path_that_leaves_the_root_is_refused(path: str):
    with pytest.raises(ImageFailed, match="leaves the root of the image, expected a path such as usr/bin/env"):
        gather([File(path, b"")])


@pytest.mark.parametrize("path", ["etc/.wh.passwd", ".wh..wh..opq", "line\nbreak", "not-\udcff-text"])
def test_a_name_that_means_something_else_in_a_layer_is_refused(path: str):
    with pytest.raises(ImageFailed, match="cannot be the name of a file in an image"):
        gather([File(path, b"")])


@pytest.mark.parametrize(("path", "target"), [("link", "../etc"), ("usr/bin/x", "../../../etc"), ("link", "")])
def test_a_link_out_of_the_image_is_refused(path: str, target: str):
    with pytest.raises(ImageFailed, match=f"{path}: leads to"):
        gather([Symlink(path, target)])


@pytest.mark.parametrize("target", ["/etc/passwd", "../bin/env", "beside"])
def test_a_link_within_the_image_is_kept_as_it_is(target: str):
    assert Symlink("usr/link", target) in gather([Symlink("usr/link", target)])


def test_two_entries_that_contradict_each_other_are_refused(tmp_path: Path):
    (tmp_path / "file").write_bytes(b"one")
    with pytest.raises(ImageFailed, match="etc/x: is given twice with different content"):
        gather([File("etc/x", tmp_path / "file"), File("etc/x", b"another")])


def test_two_entries_that_agree_are_one(tmp_path: Path):
    (tmp_path / "file").write_bytes(b"same")
    gathered = gather([File("x", tmp_path / "file"), File("x", b"same")])
    assert [entry.path for entry in gathered] == ["x"]


@pytest.mark.parametrize("below", [Symlink("lib", "usr/lib"), File("lib", b"")])
def test_an_entry_below_something_that_is_no_folder_is_refused(below: Entry):
    with pytest.raises(ImageFailed, match=r"lib/x: lies below lib, which is no folder"):
        gather([below, File("lib/x", b"")])


def test_the_folders_that_lead_to_an_entry_come_before_it():
    assert gather([File("a/b/c", b""), Directory("a", mode=0o700)]) == (
        Directory("a", mode=0o700),
        Directory("a/b"),
        File("a/b/c", b""),
    )


def test_modes_of_a_folder_on_this_machine_are_made_regular(tmp_path: Path):
    for name, mode in (("program", 0o4711), ("text", 0o600)):
        (tmp_path / name).write_bytes(b"")
        (tmp_path / name).chmod(mode)
    assert [(entry.path, entry.mode) for entry in entries_of(tmp_path, at="opt") if isinstance(entry, File)] == [
        ("opt/program", 0o755),
        ("opt/text", 0o644),
    ]


def test_a_file_that_is_missing_is_named():
    with pytest.raises(
        ImageFailed, match=r"bin/x: its content cannot be read from /nowhere/x, expected a file: No such"
    ):
        gather([File("bin/x", Path("/nowhere/x")), File("bin/x", b"")])


def test_a_folder_that_is_missing_is_named():
    with pytest.raises(ImageFailed, match="/nowhere: cannot be listed, expected a folder"):
        list(entries_of(Path("/nowhere")))


def test_a_socket_has_no_place_in_an_image(tmp_path: Path):
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(os.fspath(tmp_path / "socket"))
        with pytest.raises(ImageFailed, match="neither a file, a folder nor a link"):
            list(entries_of(tmp_path))
