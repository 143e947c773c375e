"""Programs of an unpacked tree, run on the machine itself.

A program finds the tree's libraries by LD_LIBRARY_PATH, all but those of glibc: glibc is one with the machine's dynamic
loader. To run a program through the tree's own loader would spare that exception, but runc starts itself again through
/proc/self/exe, which then is the loader. When it does, it drops its environment and takes libseccomp from the machine,
where apt itself needs it.
"""

import os
import shlex
from collections.abc import Iterator
from pathlib import Path

PROGRAM_FOLDERS = ("usr/sbin", "usr/bin")
# fmt: off
OF_GLIBC = frozenset({
    "BrokenLocale", "anl", "c", "c_malloc_debug", "dl", "m", "memusage", "mvec", "nsl", "nss_compat", "nss_dns",
    "nss_files", "nss_hesiod", "pcprofile", "pthread", "resolv", "rt", "thread_db", "util",
})
# fmt: on
LAUNCHER = """\
#!/bin/sh
LD_LIBRARY_PATH={libraries}${{LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}}
XTABLES_LIBDIR={iptables_extensions}
export LD_LIBRARY_PATH XTABLES_LIBDIR
exec {program} "$@"
"""


def write_launchers(tree: Path, final: Path) -> None:
    """Make `libraries` and `launchers` beside `root`, in a tree that will be found at `final`."""
    root, libraries, launchers = tree / "root", tree / "libraries", tree / "launchers"
    libraries.mkdir()
    for library in _libraries(root):
        (libraries / library.name).symlink_to(os.path.relpath(library, libraries))
    extensions = next(root.glob("usr/lib/*-linux-*/xtables"), root / "usr/lib/xtables")
    launchers.mkdir()
    for program in _programs(root):
        launcher = launchers / program.name
        launcher.write_text(
            LAUNCHER.format(
                libraries=_quoted(libraries, tree, final),
                iptables_extensions=_quoted(extensions, tree, final),
                program=_quoted(program, tree, final),
            )
        )
        launcher.chmod(0o755)


def _libraries(root: Path) -> Iterator[Path]:
    for library in sorted(root.glob("usr/lib/*-linux-*/lib*.so*")):
        if library.name.removeprefix("lib").partition(".so")[0] not in OF_GLIBC:
            yield library


def _programs(root: Path) -> Iterator[Path]:
    """One file per name; as in Debian's PATH for root, `sbin` goes before `bin`."""
    found = {path.name: path for folder in reversed(PROGRAM_FOLDERS) for path in (root / folder).iterdir()}
    for path in found.values():
        if path.is_file() and os.access(path, os.X_OK):
            yield path


def _quoted(path: Path, tree: Path, final: Path) -> str:
    return shlex.quote(str(final / path.relative_to(tree)))
