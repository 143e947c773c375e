"""kpu-torch-server: Debian's python3, numpy, gRPC and the tensor server of the SDK, without torch.

It is called as examples call it, so that a Compute of theirs finds it on the node and nothing is pulled.
"""

from collections.abc import Iterable, Iterator
from pathlib import Path

from testbed.images import debian
from testbed.images.bytecode import with_bytecode
from testbed.images.entries import Entry, entries_of
from testbed.images.layers import layer
from testbed.images.oci import Image
from testbed.images.recipes.tessera import ENVIRONMENT, PACKAGES, USER, interpreter, kept, python_layer
from testbed.images.wheels import runtime_dependencies

REFERENCE = "localhost:5001/kpu-torch-server:latest"
PACKAGE = "sdk/kpu/src"
NEEDED = ("grpc", "grpcio", "numpy", "typing_extensions")


def kpu_image(source: Path, cache: Path) -> Image:
    """The image of the tree at `source`, as it is now. What it needs is part of what tessera needs at run time."""
    tree = debian.unpack(PACKAGES, cache)
    python = interpreter(tree)
    site = f"usr/local/lib/{python.name}/dist-packages"
    dependencies = runtime_dependencies(source, python.name.removeprefix("python"), cache)

    def compiled(entries: Iterable[Entry]) -> Iterator[Entry]:
        return with_bytecode(kept(entries), python, cache)

    def is_needed(path: str) -> bool:
        """Packages, their metadata and the libraries beside them: `numpy`, `numpy-2.4.6.dist-info`, `numpy.libs`."""
        top = path.removeprefix(f"{site}/").partition("/")[0]
        return top.partition("-")[0].partition(".")[0] in NEEDED

    return Image(
        reference=REFERENCE,
        layers=(
            python_layer(tree, cache),
            layer("numpy and gRPC", compiled(entries_of(dependencies, at=site, wanted=is_needed))),
            layer("the tensor server", compiled(entries_of(source / PACKAGE, at=site, wanted=_is_source))),
        ),
        entrypoint=("python3", "-m", "kpu.torch.server"),
        environment=ENVIRONMENT,
        user=USER,
    )


def _is_source(path: str) -> bool:
    return not path.endswith("__pycache__")
