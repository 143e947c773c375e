import hashlib
import os
import resource
from multiprocessing import get_context
from pathlib import Path

import pytest

from testbed.images.entries import Directory, File, Symlink
from testbed.images.errors import ImageFailed
from testbed.images.layers import Layer, layer, write_layer
from testbed.images.oci import Image, write_image
from tests.testbed.images.reading import Found, read_image

REFERENCE = "docker.io/library/example:testbed"


def example(program: bytes = b"program") -> Image:
    return Image(
        reference=REFERENCE,
        layers=(
            layer("base", Directory("tmp", mode=0o1777), Symlink("bin", "usr/bin"), File("usr/bin/old", b"old")),
            layer("program", File("usr/bin/program", program, mode=0o755, uid=5, gid=6, capabilities=b"\1\0\2")),
        ),
        entrypoint=("/usr/bin/program",),
        command=("--help",),
        environment={"PATH": "/usr/bin", "A": "1"},
        workdir="/tmp",
        user="5:6",
        labels={"about": "nothing"},
        architecture="amd64",
    )


def test_a_reader_of_the_specification_finds_what_was_given(tmp_path: Path, cache: Path):
    written = write_image(example(), tmp_path / "image.tar", cache)
    image = read_image(written.path)

    assert (image.name, image.digest) == (REFERENCE, written.digest)
    assert image.docker["RepoTags"] == [REFERENCE]
    assert image.config["architecture"] == "amd64"
    assert image.config["config"] == {
        "Entrypoint": ["/usr/bin/program"],
        "Cmd": ["--help"],
        "Env": ["A=1", "PATH=/usr/bin"],
        "WorkingDir": "/tmp",
        "User": "5:6",
        "Labels": {"about": "nothing"},
    }
    assert image.layers[0]["tmp"] == Found("directory", 0o1777, (0, 0), b"", {})
    assert image.layers[0]["bin"] == Found("symlink", 0o777, (0, 0), "usr/bin", {})
    attributes = {"SCHILY.xattr.security.capability": "\1\0\2"}
    assert image.layers[1]["usr/bin/program"] == Found("file", 0o755, (5, 6), b"program", attributes)


def test_equal_images_are_equal_to_the_last_byte(tmp_path: Path):
    first = write_image(example(), tmp_path / "first.tar", tmp_path / "one cache")
    os.utime(first.path.parent, (0, 0))
    second = write_image(example(), tmp_path / "second.tar", tmp_path / "another cache")
    assert first.path.read_bytes() == second.path.read_bytes()


def test_neither_time_nor_owner_nor_order_of_files_on_this_machine_shows(tmp_path: Path, cache: Path):
    digests = set[str]()
    for names in (["a", "b"], ["b", "a"]):
        folder = tmp_path / names[0]
        folder.mkdir()
        for name in names:
            (folder / name).write_text(name)
            os.utime(folder / name, (ord(names[0]), 7))
        digests.add(write_layer(layer("x", *(File(name, folder / name) for name in names)), cache / names[0]).sha256)
    assert len(digests) == 1


def test_a_changed_file_changes_its_layer_and_no_other(tmp_path: Path, cache: Path):
    before = read_image(write_image(example(), tmp_path / "image.tar", cache).path).config["rootfs"]["diff_ids"]
    after = read_image(write_image(example(b"new"), tmp_path / "image.tar", cache).path).config["rootfs"]["diff_ids"]
    assert before[0] == after[0]
    assert before[1] != after[1]
    assert len(list((cache / "layers").glob("*/layer.tar"))) == 3


@pytest.mark.parametrize("damage", [lambda tar: tar[:-600], lambda tar: b"x" + tar[1:], lambda tar: tar[:0]])
def test_a_layer_damaged_in_the_cache_is_made_anew(damage, cache: Path):
    whole = write_layer(example().layers[1], cache)
    content = whole.path.read_bytes()
    whole.path.write_bytes(damage(content))
    again = write_layer(example().layers[1], cache)
    assert again.path.read_bytes() == content
    assert again.sha256 == hashlib.sha256(content).hexdigest()


def test_what_a_killed_builder_left_is_in_nobodys_way(cache: Path):
    whole = write_layer(example().layers[1], cache)
    content, home = whole.path.read_bytes(), whole.path.parent
    home.rename(home.with_name(home.name + ".part"))
    (home.with_name(home.name + ".part") / "layer.tar").write_bytes(content[:100])
    assert write_layer(example().layers[1], cache).path.read_bytes() == content


def build_when_all_are_there(layer: Layer, cache: Path, barrier) -> tuple[str, int]:
    barrier.wait(60)
    blob = write_layer(layer, cache)
    return hashlib.sha256(blob.path.read_bytes()).hexdigest(), blob.path.stat().st_ino


def test_builders_at_the_same_time_share_one_layer_and_see_no_half_of_it(tmp_path: Path, cache: Path):
    big = tmp_path / "big"
    big.write_bytes(os.urandom(1 << 20) * 8)
    context = get_context("spawn")
    with context.Manager() as manager, context.Pool(4) as pool:
        barrier = manager.Barrier(4)
        work = [(layer("big", File("big", big)), cache, barrier)] * 4
        results = pool.starmap(build_when_all_are_there, work, chunksize=1)
    digest = write_layer(layer("big", File("big", big)), cache).sha256
    assert {found for found, _ in results} == {digest}
    assert len({inode for _, inode in results}) == 1


def test_a_layer_larger_than_memory_would_allow_is_streamed(tmp_path: Path, cache: Path):
    big = tmp_path / "sparse"
    with open(big, "wb") as handle:
        handle.truncate(256 << 20)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    write_image(Image(reference=REFERENCE, layers=(layer("big", File("big", big)),)), tmp_path / "image.tar", cache)
    grown_mib = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) // 1024
    assert grown_mib < 32


def test_an_unknown_architecture_is_refused(tmp_path: Path, cache: Path):
    image = Image(reference=REFERENCE, layers=(), architecture="pdp11")
    with pytest.raises(ImageFailed, match=r"example:testbed: architecture is 'pdp11', expected one of amd64, arm64"):
        write_image(image, tmp_path / "image.tar", cache)


@pytest.mark.parametrize(
    "reference", ["busybox", "busybox:testbed", "docker.io/library/busybox", "localhost:5001/busybox"]
)
def test_a_name_that_a_runtime_would_complete_is_refused(reference: str, tmp_path: Path, cache: Path):
    with pytest.raises(ImageFailed, match="is no full image name"):
        write_image(Image(reference=reference, layers=()), tmp_path / "image.tar", cache)


@pytest.mark.parametrize("upper", [File("bin/program", b""), File("tmp/file", b"")])
def test_a_later_layer_may_not_change_a_folder_of_an_earlier_one(upper: File, tmp_path: Path, cache: Path):
    image = Image(reference=REFERENCE, layers=(example().layers[0], layer("upper", upper)))
    with pytest.raises(ImageFailed, match="expected the same folder in both"):
        write_image(image, tmp_path / "image.tar", cache)


def test_a_file_that_vanished_is_named_and_the_old_image_stays(tmp_path: Path, cache: Path):
    path = write_image(example(), tmp_path / "image.tar", cache).path
    before = path.read_bytes()
    broken = Image(reference=REFERENCE, layers=(layer("x", File("bin/x", tmp_path / "gone")),))
    with pytest.raises(ImageFailed, match=r"bin/x: its content cannot be read from .*/gone, expected a file"):
        write_image(broken, path, cache)
    assert path.read_bytes() == before
