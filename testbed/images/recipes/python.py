"""python: Debian's python3 alone, for pods that load libraries of C, as a static busybox cannot.

It is the lowest layer of the image of tessera.
"""

from pathlib import Path

from testbed.images import debian
from testbed.images.oci import Image
from testbed.images.recipes.tessera import ENVIRONMENT, PACKAGES, python_layer

REFERENCE = "docker.io/library/python:testbed"


def python_image(cache: Path) -> Image:
    return Image(
        reference=REFERENCE,
        layers=(python_layer(debian.unpack(PACKAGES, cache), cache),),
        command=("python3",),
        environment=ENVIRONMENT,
    )
