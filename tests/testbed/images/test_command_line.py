import subprocess
import sys
from pathlib import Path

import pytest

from testbed.images.__main__ import main
from tests.repository.files import ROOT
from tests.testbed.images.reading import read_image


def images(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "testbed.images", *arguments]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=100, check=False)


def test_list_names_every_image():
    done = images("list")
    assert done.returncode == 0, done.stderr
    ours = {name: f"docker.io/library/{name}:testbed" for name in ("busybox", "coredns", "pause", "python", "tessera")}
    listed = dict(line.split() for line in done.stdout.splitlines())
    assert listed == {**ours, "kpu": "localhost:5001/kpu-torch-server:latest"}


def test_build_writes_images_and_tells_their_digests(tmp_path: Path, cache: Path, capsys: pytest.CaptureFixture[str]):
    program = tmp_path / "coredns"
    program.write_bytes(b"\x7fELF and no loader")
    status = main(["build", "coredns", f"--output={tmp_path / 'out'}", f"--cache={cache}", f"--coredns={program}"])
    image = read_image(tmp_path / "out/coredns.tar")
    assert status == 0
    assert image.digest in capsys.readouterr().out
    assert image.layers[0]["coredns"].content == b"\x7fELF and no loader"


def test_a_failure_is_one_sentence_and_a_status(tmp_path: Path):
    done = images("build", "coredns", "--output", tmp_path, "--coredns", tmp_path / "gone")
    assert done.returncode == 1
    assert done.stderr.startswith(f"testbed.images: {tmp_path}/gone: cannot be read, expected the program coredns")
    assert len(done.stderr.splitlines()) == 1


def test_an_image_that_nobody_knows_is_refused(tmp_path: Path):
    done = images("build", "nginx", "--output", tmp_path)
    assert done.returncode == 2
    assert "invalid choice: 'nginx'" in done.stderr
