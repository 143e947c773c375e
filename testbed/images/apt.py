"""apt-get with a memory of its own, to ask which packages a set needs and to fetch them.

The machine's sources and keys are used, its package lists, its archives and its list of installed packages are not:
to this apt nothing is installed yet, so it names the whole closure, and nothing it does is seen by the machine's apt.
It trusts what the machine's apt trusts: lists signed by a known key, archives that match the lists.
"""

import re
import time
from collections.abc import Iterable, Sequence
from pathlib import Path

import msgspec

from testbed.images.cache import locked
from testbed.images.digests import file_digest
from testbed.images.errors import ImageFailed
from testbed.images.programs import run

FRESH_S = 24 * 60 * 60
PLANNED = re.compile(r"'[^']*' (?P<file>\S+) \d+ SHA256:(?P<sha256>[0-9a-f]{64})")
# A hook of the machine's configuration would touch the machine; the metadata of graphical shops is of no use here.
CONFIGURATION = """\
#clear APT::Update::Pre-Invoke;
#clear APT::Update::Post-Invoke;
#clear APT::Update::Post-Invoke-Success;
#clear Acquire::IndexTargets::deb::DEP-11;
Dir::State "{home}/state";
Dir::State::status "{home}/nothing-installed";
Dir::Cache "{home}";
Dir::Cache::archives "archives";
Dir::Cache::pkgcache "pkgcache.bin";
Dir::Cache::srcpkgcache "srcpkgcache.bin";
Dir::Log "{home}/log";
APT::Sandbox::User "root";
APT::Install-Recommends "false";
APT::Install-Suggests "false";
Acquire::ForceHash "SHA256";
Acquire::Languages "none";
Acquire::Retries "3";
"""


class Archive(msgspec.Struct, frozen=True):
    """A package in one version for one architecture, as its file is named: `libcap2_1%3a2.66-4_amd64.deb`."""

    file: str
    sha256: str

    @property
    def package(self) -> str:
        return self.file.partition("_")[0]

    @property
    def version(self) -> str:
        return self.file.split("_")[1].replace("%3a", ":")


class Apt:
    """One private apt. `home` holds its lists and archives, and is locked while it works."""

    def __init__(self, home: Path) -> None:
        self.home = home.absolute()

    def fetch(self, packages: Sequence[str]) -> tuple[Archive, ...]:
        """The archives of the packages and of all they depend on, of which `path_of` tells where they are."""
        with locked(self.home):
            self._prepare()
            if not self._has_fresh_lists():
                self._update()
            try:
                return self._download(packages)
            except ImageFailed:
                # The mirror may have dropped a version that our lists still name.
                self._update()
                return self._download(packages)

    def path_of(self, archive: Archive) -> Path:
        return self.home / "archives" / archive.file

    def _prepare(self) -> None:
        for folder in ("state/lists/partial", "archives/partial", "no-archives/partial", "log"):
            (self.home / folder).mkdir(parents=True, exist_ok=True)
        (self.home / "nothing-installed").touch()
        (self.home / "apt.conf").write_text(CONFIGURATION.format(home=self.home))

    def _has_fresh_lists(self) -> bool:
        stamp = self.home / "updated"
        return stamp.exists() and time.time() - stamp.stat().st_mtime < FRESH_S

    def _update(self) -> None:
        self._run("update", to="fetch the package lists")
        (self.home / "updated").touch()

    def _download(self, packages: Sequence[str]) -> tuple[Archive, ...]:
        wanted = " ".join(packages)
        # apt names only what it would download: with an empty folder of archives that is everything.
        nothing_yet = ["-o", f"Dir::Cache::archives={self.home}/no-archives"]
        archives = read_plan(self._run("install", "--print-uris", *nothing_yet, *packages, to=f"resolve {wanted}"))
        self._remove_damaged(archives)
        self._run("install", "--download-only", *packages, to=f"download {wanted}")
        for archive in archives:
            if not self._is_intact(archive):
                raise ImageFailed(
                    f"{self.path_of(archive)}: is missing or has another SHA-256 than apt's lists say, "
                    f"{archive.sha256}; remove {self.home} and try again"
                )
        return archives

    def _remove_damaged(self, archives: Iterable[Archive]) -> None:
        for archive in archives:
            if not self._is_intact(archive):
                self.path_of(archive).unlink(missing_ok=True)

    def _is_intact(self, archive: Archive) -> bool:
        path = self.path_of(archive)
        return path.exists() and file_digest(path) == archive.sha256

    def _run(self, verb: str, *arguments: str, to: str) -> str:
        return run(["apt-get", "-c", self.home / "apt.conf", "-qq", "-y", verb, *arguments], to=to)


def read_plan(plan: str) -> tuple[Archive, ...]:
    """The archives that `apt-get --print-uris` lists, one on each line."""
    archives: list[Archive] = []
    for line in plan.splitlines():
        planned = PLANNED.fullmatch(line)
        if planned is None:
            raise ImageFailed(f"apt-get plans {line!r}, expected an address, a file, a size and a SHA-256")
        archives.append(Archive(planned["file"], planned["sha256"]))
    return tuple(sorted(archives, key=lambda archive: archive.file))
