"""kube-scheduler: the testbed's own build, where the official image has it.

Pods name the program without a path, as they do with the official image. Whoever installs a chart gives this image the
reference that the chart asks for.
"""

from pathlib import Path

from testbed.images.entries import File
from testbed.images.layers import layer
from testbed.images.oci import Image

REFERENCE = "docker.io/library/kube-scheduler:testbed"


def kube_scheduler_image(program: Path) -> Image:
    return Image(
        reference=REFERENCE,
        layers=(layer("kube-scheduler", File("usr/local/bin/kube-scheduler", program, mode=0o755)),),
        entrypoint=("kube-scheduler",),
        environment={"PATH": "/usr/local/bin"},
        user="65532:65532",
    )
