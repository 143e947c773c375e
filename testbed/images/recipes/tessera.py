"""tessera: Debian's python3, our run-time dependencies and our package, in three layers that change ever more often.

The library for containers is in it if it is built. There is no shell, no package manager and no documentation. The
Dockerfile at the root of the repository makes an image for users that behaves the same; a test compares the two.
"""

import re
from collections.abc import Iterable, Iterator
from importlib.metadata import Distribution, EntryPoint, PathDistribution
from pathlib import Path

from testbed.images import debian
from testbed.images.bytecode import with_bytecode
from testbed.images.entries import Directory, Entry, File, entries_of
from testbed.images.layers import Layer, layer
from testbed.images.oci import Image
from testbed.images.wheels import own_package, runtime_dependencies

REFERENCE = "docker.io/library/tessera:testbed"
# Wheels bring their libraries, except those that every Linux is taken to have.
PACKAGES = ("ca-certificates", "libstdc++6", "python3")
ENTRYPOINT = ("tessera",)
LIBRARY = "usr/local/lib/tessera/libtessera.so"
USER = "65532:65532"
PASSWD = b"root:x:0:0:root:/:/sbin/nologin\ntessera:x:65532:65532:tessera:/:/sbin/nologin\n"
GROUP = b"root:x:0:\ntessera:x:65532:\n"
ENVIRONMENT = {
    "LANG": "C.UTF-8",
    "PATH": "/usr/local/bin:/usr/bin",
    "PYTHONDONTWRITEBYTECODE": "1",
    "PYTHONUNBUFFERED": "1",
}
PROGRAM = """\
#!/usr/bin/python3
import sys

from {module} import {function}

if __name__ == "__main__":  # worker processes import this file too
    sys.exit({function}())
"""
KEPT_OF_DEBIAN = re.compile(
    r"bin|sbin|lib|lib64|etc/(ssl/certs|python3)[^/]*/.*|usr/bin/python3[.\d]*|usr/(lib64|lib/python3[^/]*)/.*"
    r"|usr/lib/[^/]*-linux-[^/]*/.*"
)
LEFT_OUT = re.compile(
    r".*/(gconv|test|tests|idlelib|pydoc_data|ensurepip|lib2to3|turtledemo|__pycache__)/.*|.*\.(a|c|h|pxd|pyi|pyx)"
)


def tessera_image(source: Path, cache: Path) -> Image:
    """The image of the tree at `source`, as it is now."""
    tree = debian.unpack(PACKAGES, cache)
    python = interpreter(tree)
    site = f"usr/local/lib/{python.name}/dist-packages"
    dependencies = runtime_dependencies(source, python.name.removeprefix("python"), cache)
    package = own_package(source, cache)
    about = distribution(package)

    def compiled(entries: Iterable[Entry]) -> Iterator[Entry]:
        return with_bytecode(kept(entries), python, cache)

    return Image(
        reference=REFERENCE,
        layers=(
            python_layer(tree, cache),
            layer(f"the packages of {python.name} that tessera needs", compiled(entries_of(dependencies, at=site))),
            layer(
                f"tessera {about.version}",
                compiled(entries_of(package, at=site)),
                (File(f"usr/local/bin/{point.name}", _program(point), mode=0o755) for point in _scripts(about)),
                (File(LIBRARY, built, mode=0o755) for built in source.glob("build/native/libtessera.so")),
            ),
        ),
        entrypoint=ENTRYPOINT,
        environment=ENVIRONMENT,
        user=USER,
        labels=labels(about),
    )


def python_layer(tree: debian.Tree, cache: Path) -> Layer:
    """What runs Python programs, and the users they run as."""
    entries = kept(entry for entry in entries_of(tree.root) if KEPT_OF_DEBIAN.fullmatch(entry.path))
    return layer(
        "python3 of Debian",
        with_bytecode(entries, interpreter(tree), cache),
        File("etc/passwd", PASSWD),
        File("etc/group", GROUP),
        Directory("tmp", mode=0o1777),
    )


def kept(entries: Iterable[Entry]) -> Iterator[Entry]:
    return (entry for entry in entries if not LEFT_OUT.fullmatch(entry.path))


def interpreter(tree: debian.Tree) -> Path:
    """What runs the tree's Python on this machine, called after its version."""
    return tree.launcher(tree.program("python3").resolve().name)


def distribution(package: Path) -> Distribution:
    """What our wheel says about itself."""
    (about,) = package.glob("*.dist-info")
    return PathDistribution(about)


def labels(about: Distribution) -> dict[str, str]:
    return {
        "org.opencontainers.image.title": "tessera",
        "org.opencontainers.image.description": about.metadata["Summary"],
        "org.opencontainers.image.licenses": about.metadata["License-Expression"],
        "org.opencontainers.image.version": about.version,
    }


def _scripts(about: Distribution) -> Iterable[EntryPoint]:
    return about.entry_points.select(group="console_scripts")


def _program(point: EntryPoint) -> bytes:
    return PROGRAM.format(module=point.module, function=point.attr).encode()
