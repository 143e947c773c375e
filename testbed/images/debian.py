"""Debian packages with all they depend on, unpacked into a folder and not installed.

No maintainer script is run, so what such scripts make and we need is made here: the merged /usr, the chosen
alternatives, the bundle of certificates. A tree is named after the exact versions in it and never changes; which
versions are current is asked again once a day. Neither root nor anything but apt, dpkg-deb and tar is needed.
"""

import hashlib
import os
import subprocess
import time
from collections.abc import Iterable, Iterator
from pathlib import Path

import msgspec

from testbed.images.apt import FRESH_S, Apt, Archive
from testbed.images.cache import default_cache, make_once
from testbed.images.errors import ImageFailed
from testbed.images.launchers import PROGRAM_FOLDERS, write_launchers
from testbed.images.programs import find_program, last_words

# Names the way in which trees are made; a change here lets every tree be made anew.
MADE = "1"
MERGED_INTO_USR = ("bin", "sbin", "lib", "lib64")
ALTERNATIVES = {
    f"usr/sbin/{family}{verb}": f"{family}-nft{verb}"
    for family in ("iptables", "ip6tables")
    for verb in ("", "-save", "-restore")
}
CERTIFICATES = "usr/share/ca-certificates"
CERTIFICATE_BUNDLE = "etc/ssl/certs/ca-certificates.crt"


class Tree(msgspec.Struct, frozen=True):
    """Unpacked packages in one set of versions."""

    home: Path
    archives: tuple[Archive, ...]

    @property
    def root(self) -> Path:
        """What would be `/` had the packages been installed."""
        return self.home / "root"

    @property
    def launchers(self) -> Path:
        """For PATH: one small script per program, which runs it from the tree with the libraries it needs."""
        return self.home / "launchers"

    @property
    def libraries(self) -> Path:
        """For LD_LIBRARY_PATH: the libraries of the tree but those of glibc, which must be the machine's own."""
        return self.home / "libraries"

    @property
    def cni_plugins(self) -> Path:
        return self.root / "usr/lib/cni"

    def launcher(self, program: str) -> Path:
        """How to run a program of the tree on this machine."""
        return _existing(self.launchers / program, program, self)

    def program(self, name: str) -> Path:
        """The program itself, to be copied into an image."""
        found = (path for folder in PROGRAM_FOLDERS if (path := self.root / folder / name).exists())
        return _existing(next(found, self.root / "usr/bin" / name), name, self)


def unpack(packages: Iterable[str], cache: Path | None = None) -> Tree:
    """The packages and everything they depend on, in a tree that all who ask for the same versions share."""
    home = (cache or default_cache()).absolute() / "debian"
    wanted = sorted(set(packages))
    if not wanted:
        raise ImageFailed("no Debian package is named, expected at least one")
    pin = home / "pins" / f"{_name(wanted)}.json"
    tree = _pinned_tree(pin, home)
    if tree is not None:
        return tree
    apt = Apt(home / "apt")
    tree = _tree_of(apt.fetch(wanted), home)
    make_once(tree.home, lambda scratch: _unpack(tree, [apt.path_of(archive) for archive in tree.archives], scratch))
    make_once(pin, lambda scratch: _write_pin(tree, scratch), is_whole=lambda pin: _pinned_tree(pin, home) == tree)
    return tree


def _name(parts: Iterable[str]) -> str:
    return hashlib.sha256("\n".join([MADE, *parts]).encode()).hexdigest()[:24]


def _pinned_tree(pin: Path, home: Path) -> Tree | None:
    """The tree that was current for these packages less than a day ago, if it is still there."""
    try:
        age_s = time.time() - pin.stat().st_mtime
        tree = _tree_of(msgspec.json.decode(pin.read_bytes(), type=tuple[Archive, ...]), home)
    except (OSError, msgspec.DecodeError):
        return None
    return tree if age_s < FRESH_S and tree.home.exists() else None


def _tree_of(archives: tuple[Archive, ...], home: Path) -> Tree:
    return Tree(home / "trees" / _name(archive.sha256 for archive in archives), archives)


def _write_pin(tree: Tree, path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(msgspec.json.encode(tree.archives))


def _existing(path: Path, program: str, tree: Tree) -> Path:
    if path.exists():
        return path
    packages = ", ".join(archive.package for archive in tree.archives)
    raise ImageFailed(f"{program} is in none of the packages {packages}; unpack the package that has it too")


def _unpack(tree: Tree, archives: Iterable[Path], scratch: Path) -> None:
    root = scratch / "root"
    for name in MERGED_INTO_USR:
        (root / "usr" / name).mkdir(parents=True)
        (root / name).symlink_to(f"usr/{name}")
    for archive in archives:
        _extract(archive, root)
    _make_links_relative(root)
    _choose_alternatives(root)
    _bundle_certificates(root)
    write_launchers(scratch, tree.home)


def _extract(archive: Path, root: Path) -> None:
    """What `dpkg-deb --extract` does, except that it would put a folder in the place of a link to one."""
    purpose = f"unpack {archive.name}"
    read = [find_program("dpkg-deb", to=purpose), "--fsys-tarfile", archive]
    write = [find_program("tar", to=purpose), "--extract", "--keep-directory-symlink", "--no-same-owner", "-C", root]
    with (
        subprocess.Popen(read, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as reader,
        subprocess.Popen(write, stdin=reader.stdout, stderr=subprocess.PIPE) as writer,
    ):
        assert reader.stdout is not None
        reader.stdout.close()
        complaints = writer.communicate()[1] + reader.communicate()[1]
    if reader.returncode or writer.returncode:
        raise ImageFailed(
            f"{archive}: cannot be unpacked, expected a Debian package: {last_words(complaints.decode())}"
        )


def _make_links_relative(root: Path) -> None:
    """Let links stay within the tree, whether it is looked at from the machine or from a container."""
    for link in _links(root):
        target = os.readlink(link)
        if target.startswith("/"):
            link.unlink()
            link.symlink_to(os.path.relpath(root / target.lstrip("/"), link.parent))


def _links(root: Path) -> Iterator[Path]:
    for folder, folders, files in os.walk(root):
        yield from (path for name in [*folders, *files] if (path := Path(folder, name)).is_symlink())


def _choose_alternatives(root: Path) -> None:
    for link, target in ALTERNATIVES.items():
        if (root / link).with_name(target).exists() and not (root / link).exists():
            (root / link).symlink_to(target)


def _bundle_certificates(root: Path) -> None:
    certificates = sorted((root / CERTIFICATES).rglob("*.crt"))
    if certificates:
        bundle = root / CERTIFICATE_BUNDLE
        bundle.parent.mkdir(parents=True, exist_ok=True)
        bundle.write_bytes(b"".join(certificate.read_bytes() for certificate in certificates))
