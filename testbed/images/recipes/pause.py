"""pause: the process that holds a pod's namespaces, reaps what is left to it, and ends at once when asked to.

A shell does: `wait` collects every child, also those that were adopted, and returns at once on a signal.
"""

from pathlib import Path

from testbed.images.entries import File
from testbed.images.layers import layer
from testbed.images.oci import Image
from testbed.images.recipes.busybox import busybox_program

REFERENCE = "docker.io/library/pause:testbed"
SCRIPT = b"""\
#!/bin/busybox sh
trap 'exit 0' TERM INT
while :; do
  busybox sleep 2147483647 &
  wait
done
"""


def pause_image(cache: Path) -> Image:
    return Image(
        reference=REFERENCE,
        layers=(
            layer(
                "busybox-static of Debian, and a script that waits",
                File("bin/busybox", busybox_program(cache), mode=0o755),
                File("pause", SCRIPT, mode=0o755),
            ),
        ),
        entrypoint=("/pause",),
        environment={"PATH": "/bin"},
        user="65535:65535",
    )
