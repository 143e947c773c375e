"""What recipes put into images, without a container runtime."""

import os
import re
import shutil
from pathlib import Path

import pytest

from testbed.fixtures import require
from testbed.images import debian
from testbed.images.bytecode import with_bytecode
from testbed.images.cache import default_cache
from testbed.images.entries import File
from testbed.images.errors import ImageFailed
from testbed.images.layers import content_key, layer
from testbed.images.oci import Image
from testbed.images.recipes import busybox, coredns, pause, tessera
from testbed.images.wheels import PROJECT_FILES, own_package, runtime_dependencies
from tests.repository.files import ROOT


@pytest.fixture(scope="module")
def image() -> Image:
    require(shutil.which("apt-get") is not None, "the image of tessera needs apt-get, and this machine has none")
    return tessera.tessera_image(ROOT, default_cache())


@pytest.fixture
def sources(tmp_path: Path) -> Path:
    """A copy of our sources, to be changed."""
    copy = tmp_path / "sources"
    shutil.copytree(ROOT / "src/tessera", copy / "src/tessera", ignore=shutil.ignore_patterns("__pycache__"))
    (copy / "requirements").mkdir()
    for name in (*PROJECT_FILES, "requirements/runtime.txt"):
        shutil.copy(ROOT / name, copy / name)
    for built in ROOT.glob("build/native/libtessera.so"):
        (copy / "build/native").mkdir(parents=True)
        shutil.copy(built, copy / "build/native")
    return copy


def test_a_changed_source_changes_the_top_layer_alone(image: Image, sources: Path):
    same = tessera.tessera_image(sources, default_cache())
    (sources / "src/tessera/errors.py").write_text('"""Nothing."""\n')
    changed = tessera.tessera_image(sources, default_cache())

    before, unchanged, after = ([content_key(layer) for layer in made.layers] for made in (image, same, changed))
    assert unchanged == before
    assert after[:2] == before[:2]
    assert after[2] != before[2]


def test_every_python_source_has_its_bytecode(image: Image):
    files = [entry.path for layer in image.layers for entry in layer.entries if isinstance(entry, File)]
    sources = {path for path in files if path.endswith(".py")}
    compiled = {
        re.sub(r"__pycache__/(.*)\.cpython-3\d+\.pyc$", r"\1.py", path) for path in files if path.endswith(".pyc")
    }
    assert len(sources) > 1000
    assert compiled == sources


def test_bytecode_is_the_same_wherever_it_is_compiled(image: Image, tmp_path: Path):
    python = tessera.interpreter(debian.unpack(tessera.PACKAGES))
    sources = [entry for entry in image.layers[2].entries if entry.path.endswith(".py")]
    compiled = [layer("", with_bytecode(sources, python, tmp_path / name)) for name in ("here", "there")]
    assert len(compiled[0].entries) > 2 * len(sources)
    assert content_key(compiled[0]) == content_key(compiled[1])


def test_nothing_that_only_people_read_and_no_shell_is_in_the_image(image: Image):
    paths = [entry.path for layer in image.layers for entry in layer.entries]
    assert [path for path in paths if path.startswith(("usr/share/", "usr/sbin/", "var/"))] == []
    assert {path.rstrip(".0123456789") for path in paths if path.startswith("usr/bin/")} == {"usr/bin/python"}


def test_no_path_of_this_machine_is_in_the_image(image: Image):
    own = [os.fsencode(ROOT), os.fsencode(default_cache())]
    own_layer = image.layers[2]
    contents = [
        entry.content if isinstance(entry.content, bytes) else entry.content.read_bytes()
        for entry in own_layer.entries
        if isinstance(entry, File)
    ]
    assert [content for content in contents if any(path in content for path in own)] == []


def test_a_tree_without_our_sources_is_refused(tmp_path: Path, cache: Path):
    for prepare in (lambda: own_package(tmp_path, cache), lambda: runtime_dependencies(tmp_path, "3.11", cache)):
        with pytest.raises(ImageFailed, match="does not exist, expected it in the sources of Tessera"):
            prepare()


def test_a_requirement_whose_hash_is_wrong_is_refused(sources: Path, cache: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("PATH", f"{os.environ['PATH']}:{ROOT}/.uv/bin")
    requirements = sources / "requirements/runtime.txt"
    requirements.write_text(f"click==8.1.7 --hash=sha256:{'0' * 64}\n")
    with pytest.raises(ImageFailed, match=r"uv ended with \d+ when asked to install .*runtime.txt: .*") as failed:
        runtime_dependencies(sources, "3.11", cache)
    assert "0" * 64 in str(failed.value)
    assert list((cache / "dependencies").glob("*[!k]")) == []


def test_coredns_must_be_a_static_program(tmp_path: Path):
    (tmp_path / "script").write_text("#!/bin/sh\n")
    for program in (tmp_path / "script", Path("/bin/sh")):
        with pytest.raises(ImageFailed, match="is no static program, expected one; build coredns with CGO_ENABLED=0"):
            coredns.coredns_image(program)
    with pytest.raises(ImageFailed, match=r"gone: cannot be read, expected the program coredns: No such file"):
        coredns.coredns_image(tmp_path / "gone")


def test_pause_and_busybox_share_the_one_program(image: Image):
    assert image
    contents = [
        entry.content
        for made in (pause.pause_image(default_cache()), busybox.busybox_image(default_cache()))
        for entry in made.layers[0].entries
        if isinstance(entry, File) and entry.path == "bin/busybox"
    ]
    assert len(contents) == 2
    assert contents[0] == contents[1]
