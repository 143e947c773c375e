"""Debian packages from the machine's own sources. The first run downloads them, the next find them in the cache."""

import os
import shutil
import subprocess
import threading
from pathlib import Path

import pytest

from testbed.fixtures import require
from testbed.images import apt, debian
from testbed.images.cache import default_cache
from testbed.images.debian import Tree
from testbed.images.errors import ImageFailed

PACKAGES = ("busybox-static", "conntrack", "containernetworking-plugins", "iproute2", "iptables", "nftables", "runc")


@pytest.fixture(autouse=True)
def _needs_apt() -> None:
    missing = [name for name in ("apt-get", "dpkg-deb", "tar") if shutil.which(name) is None]
    require(not missing, f"Debian packages need {', '.join(missing)}, and this machine has none")


@pytest.fixture
def tree() -> Tree:
    return debian.unpack(PACKAGES)


def output_of(*command: str | Path, **options) -> str:
    return subprocess.run(command, check=True, capture_output=True, text=True, timeout=30, **options).stdout


@pytest.mark.parametrize(
    ("command", "expected"),
    [
        ("nft --version", "nftables v"),
        ("runc --version", "runc version"),
        ("busybox echo works", "works"),
        ("ip -Version", "iproute2"),
        ("conntrack --version", "conntrack v"),
        ("iptables --version", "nf_tables"),
    ],
)
def test_an_unpacked_program_runs_on_this_machine(tree: Tree, command: str, expected: str):
    program, *arguments = command.split()
    assert expected in output_of(tree.launcher(program), *arguments)


def test_an_unpacked_network_plugin_runs_on_this_machine(tree: Tree):
    asked = output_of(tree.cni_plugins / "bridge", env={"CNI_COMMAND": "VERSION"}, input='{"cniVersion": "1.0.0"}')
    assert "supportedVersions" in asked


def test_libraries_come_from_the_tree_and_glibc_from_the_machine(tree: Tree):
    loaded = output_of("ldd", tree.program("nft"), env=os.environ | {"LD_LIBRARY_PATH": str(tree.libraries)})
    origin = dict(line.split(" => ") for line in loaded.strip().replace("\t", "").splitlines() if "=>" in line)
    assert origin["libnftables.so.1"].startswith(str(tree.home))
    assert not origin["libc.so.6"].startswith(str(tree.home))


def test_the_closure_is_whole_and_only_apt_knows_its_versions(tree: Tree):
    versions = {archive.package: archive.version for archive in tree.archives}
    assert {*PACKAGES, "libc6", "libseccomp2", "libnftables1"} <= versions.keys()
    assert all(version[0].isdigit() for version in versions.values())


def test_usr_is_merged_and_no_link_leaves_the_tree(tree: Tree):
    assert (tree.root / "bin").readlink() == Path("usr/bin")
    links = [path for path in tree.root.rglob("*") if path.is_symlink()]
    assert links
    assert [link for link in links if link.readlink().is_absolute()] == []


def test_the_bundle_of_certificates_is_made():
    bundle = debian.unpack(["ca-certificates"]).root / debian.CERTIFICATE_BUNDLE
    assert bundle.read_text().count("BEGIN CERTIFICATE") > 50


def test_a_tree_that_is_there_is_given_without_asking_apt(tree: Tree, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("PATH", "/nowhere")
    assert debian.unpack(reversed(PACKAGES)) == tree


def test_a_program_that_no_package_has_is_named(tree: Tree):
    for find in (tree.launcher, tree.program):
        with pytest.raises(
            ImageFailed, match=r"emacs is in none of the packages busybox-static, .*; unpack the package"
        ):
            find("emacs")


def test_no_package_at_all_is_refused():
    with pytest.raises(ImageFailed, match="no Debian package is named"):
        debian.unpack([])


@pytest.fixture
def busybox_cache(cache: Path) -> Path:
    """A cache of its own with the lists and the archive of busybox, so that little is downloaded."""
    debian.unpack(["busybox-static"])
    shutil.copytree(default_cache() / "debian" / "apt", cache / "debian" / "apt", symlinks=True)
    return cache


def test_a_package_that_does_not_exist_is_named(busybox_cache: Path):
    with pytest.raises(ImageFailed, match=r"resolve no-such-package: .*Unable to locate package no-such-package"):
        debian.unpack(["no-such-package"], busybox_cache)


def test_lists_that_are_missing_are_fetched(busybox_cache: Path):
    lists = busybox_cache / "debian/apt/state/lists"
    shutil.rmtree(lists)
    assert debian.unpack(["busybox-static"], busybox_cache).program("busybox").exists()
    assert any(lists.glob("*Packages*"))


def test_lists_older_than_a_day_are_fetched_again(busybox_cache: Path):
    stamp = busybox_cache / "debian/apt/updated"
    os.utime(stamp, (0, 0))
    debian.unpack(["busybox-static"], busybox_cache)
    assert stamp.stat().st_mtime > 0


def test_an_archive_damaged_in_the_cache_is_downloaded_again(busybox_cache: Path):
    (archive,) = (busybox_cache / "debian/apt/archives").glob("busybox-static_*.deb")
    size = archive.stat().st_size
    archive.write_bytes(b"x" * size)
    debian.unpack(["busybox-static"], busybox_cache)
    assert archive.read_bytes().startswith(b"!<arch>")


def test_hooks_of_the_machines_apt_are_not_run(busybox_cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    hooks = [f'APT::Update::{when} {{ "touch {tmp_path}/{when}"; }};' for when in ("Pre-Invoke", "Post-Invoke")]
    (tmp_path / "hooks.conf").write_text("\n".join(hooks))
    monkeypatch.setenv("APT_CONFIG", str(tmp_path / "hooks.conf"))
    os.utime(busybox_cache / "debian/apt/updated", (0, 0))
    debian.unpack(["busybox-static"], busybox_cache)
    assert not (tmp_path / "Pre-Invoke").exists()
    assert not (tmp_path / "Post-Invoke").exists()


def test_the_machines_own_apt_is_left_alone(busybox_cache: Path):
    state = [Path("/var/lib/apt/lists"), Path("/var/lib/dpkg/status"), Path("/var/cache/apt")]
    before = [path.stat().st_mtime_ns for path in state if path.exists()]
    os.utime(busybox_cache / "debian/apt/updated", (0, 0))
    debian.unpack(["busybox-static"], busybox_cache)
    assert [path.stat().st_mtime_ns for path in state if path.exists()] == before


def test_two_who_unpack_at_the_same_time_share_one_tree(busybox_cache: Path):
    trees: list[Tree] = []
    threads = [
        threading.Thread(target=lambda: trees.append(debian.unpack(["busybox-static"], busybox_cache)))
        for _ in range(2)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(trees) == 2
    assert trees[0] == trees[1]
    assert [path.name for path in (busybox_cache / "debian/trees").iterdir() if path.is_dir()] == [trees[0].home.name]


def test_a_machine_without_apt_is_told_so(cache: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("PATH", "/nowhere")
    with pytest.raises(ImageFailed, match="apt-get is not on this machine, expected it in order to fetch the package"):
        debian.unpack(["busybox-static"], cache)


def test_an_archive_without_a_hash_is_not_passed_over():
    whole = f"'http://mirror.example/a.deb' a_1_all.deb 10 SHA256:{'0' * 64}"
    assert apt.read_plan(f"{whole}\n") == (apt.Archive("a_1_all.deb", "0" * 64),)
    with pytest.raises(ImageFailed, match=r"apt-get plans .*b_1_all.deb 10 .*, expected an address, a file, a size"):
        apt.read_plan(f"{whole}\n'http://mirror.example/b.deb' b_1_all.deb 10 \n")


def test_a_version_is_read_from_the_name_of_an_archive():
    archive = apt.Archive("libcap2_1%3a2.66-4+deb12u1_amd64.deb", "0" * 64)
    assert (archive.package, archive.version) == ("libcap2", "1:2.66-4+deb12u1")
