import sys
from pathlib import Path

import pytest

from tessera.embedded.runtime.images import Absent, Image, Images, Program, parse_images
from tessera.errors import InvalidInput

NO_FILE = Path("/none/images.toml")
OWN = Images.load(NO_FILE)
SEEDS = (
    "tensorflow/tensorflow:latest-gpu",
    "localhost:5001/kpu-torch-server:latest",
    "horovod/horovod:latest",
    "quay.io/my-org/pytorch-horovod:latest",
    "quay.io/my-org/llama-trainer:latest",
    "my-image",
    "test-image",
)


@pytest.mark.parametrize("reference", SEEDS)
def test_images_of_the_examples_run_without_a_command(reference):
    assert isinstance(OWN.program_of({"image": reference}), Program)


def test_a_command_runs_whatever_the_image_is():
    program = OWN.program_of({"image": "nobody/knows:1", "command": ["echo"], "args": ["a"]})
    assert isinstance(program, Program)
    assert program.argv == ("echo", "a")
    assert "this machine's own file system" in program.note


def test_with_pull_policy_never_only_known_images_run():
    asked = {"image": "nobody/knows:1", "command": ["echo"], "imagePullPolicy": "Never"}
    absent = OWN.program_of(asked)
    assert isinstance(absent, Absent)
    assert (absent.reason, absent.later) == ("ErrImageNeverPull", "ErrImageNeverPull")
    assert isinstance(OWN.program_of(asked | {"image": "tessera.local/machine"}), Program)


def test_an_unknown_image_without_a_command_says_what_to_do():
    absent = OWN.program_of({"image": "nobody/knows:1"})
    assert isinstance(absent, Absent)
    assert (absent.reason, absent.later) == ("ErrImagePull", "ImagePullBackOff")
    assert absent.message == (
        '"nobody/knows:1" is not pulled, and the container has no command: give the container a command that this'
        ' machine has, or add an [[image]] with pattern = "nobody/knows:1" and command = [...] to /none/images.toml'
    )


def test_arguments_follow_the_command_of_the_table():
    images = Images([Image(pattern="server:*", command=("{python}", "-m", "server"))], NO_FILE)
    program = images.program_of({"image": "server:2", "args": ["--port", "80"]})
    assert isinstance(program, Program)
    assert program.argv == (sys.executable, "-m", "server", "--port", "80")


def test_a_stand_in_is_told_and_gets_no_arguments():
    images = Images([Image(pattern="*", command=("sleep", "1"), stand_in="the real one")], NO_FILE)
    program = images.program_of({"image": "x", "args": ["--port"]})
    assert isinstance(program, Program)
    assert program.argv == ("sleep", "1")
    assert program.note.endswith("in place of the real one")


def test_arguments_alone_are_run_for_an_image_that_has_no_program_of_its_own():
    program = OWN.program_of({"image": "busybox:1.36", "args": ["echo", "a"]})
    assert isinstance(program, Program)
    assert program.argv == ("echo", "a")
    assert isinstance(OWN.program_of({"image": "busybox:1.36"}), Absent)
    assert isinstance(OWN.program_of({"image": "nobody/knows:1", "args": ["echo", "a"]}), Absent)


def test_a_users_table_comes_before_our_own_as_soon_as_it_is_there(tmp_path):
    path = tmp_path / "images.toml"
    images = Images.load(path)
    assert isinstance(images.program_of({"image": "mine:1"}), Absent)
    path.write_text(
        '[[image]]\npattern = "my-image"\ncommand = ["mine"]\n[[image]]\npattern = "mine:*"\ncommand = ["m"]\n'
    )
    programs = [images.program_of({"image": image}) for image in ("my-image", "mine:1")]
    assert [program.argv for program in programs if isinstance(program, Program)] == [("mine",), ("m",)]


def test_a_users_table_that_cannot_be_used_is_told_to_those_who_need_it(tmp_path):
    path = tmp_path / "images.toml"
    path.write_text("[[image]")
    images = Images.load(path)
    absent = images.program_of({"image": "my-image"})
    assert isinstance(absent, Absent)
    assert absent.message.startswith(f"{path}: cannot be used")
    assert isinstance(images.program_of({"image": "my-image", "command": ["echo"]}), Program)


@pytest.mark.parametrize(
    "text", ["[[image]]\ncommand = ['x']", "image = 3", "[[image]", "[[image]]\npattern='x'\nprogram='y'"]
)
def test_a_table_that_cannot_be_used_is_refused_in_a_sentence(text):
    with pytest.raises(InvalidInput, match=r"^mine.toml: cannot be used \(.*\), expected \[\[image\]\] tables"):
        parse_images(text, "mine.toml")


def test_a_table_that_cannot_be_read_is_named(tmp_path):
    with pytest.raises(InvalidInput, match=f"{tmp_path}: cannot be read"):
        Images.load(tmp_path).find("my-image")
