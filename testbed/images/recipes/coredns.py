"""coredns: the cluster's name server, given as a static program.

It does not run as root. The file carries the right to bind low ports, so port 53 works wherever a pod keeps
NET_BIND_SERVICE; port 1053 works as well. A pod that drops this capability cannot start the program at all.
"""

import struct
from pathlib import Path

from testbed.images.entries import File
from testbed.images.errors import ImageFailed
from testbed.images.layers import layer
from testbed.images.oci import Image

REFERENCE = "docker.io/library/coredns:testbed"
NET_BIND_SERVICE = 10
# struct vfs_cap_data of the kernel, revision 2 with the effective flag: permitted and inheritable, low words first.
BIND_LOW_PORTS = struct.pack("<5I", 0x02000001, 1 << NET_BIND_SERVICE, 0, 0, 0)
LOADER = b"ld-linux"


def coredns_image(program: Path) -> Image:
    _refuse_dynamic(program)
    return Image(
        reference=REFERENCE,
        layers=(layer("coredns", File("coredns", program, mode=0o755, capabilities=BIND_LOW_PORTS)),),
        entrypoint=("/coredns",),
        user="65532:65532",
    )


def _refuse_dynamic(program: Path) -> None:
    """An image of one file has no loader: a program that names one would fail with "no such file"."""
    try:
        with open(program, "rb") as handle:
            start = handle.read(4096)
    except OSError as error:
        raise ImageFailed(f"{program}: cannot be read, expected the program coredns: {error.strerror}") from error
    if not start.startswith(b"\x7fELF") or LOADER in start:
        raise ImageFailed(f"{program}: is no static program, expected one; build coredns with CGO_ENABLED=0")
