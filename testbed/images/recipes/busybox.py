"""busybox: a shell and the usual small programs, for pods that test something.

Debian's static build resolves names, with `nslookup` as with `wget`: since glibc 2.34 the resolver is part of it and
nothing is loaded at run time.
"""

from pathlib import Path

from testbed.images import debian
from testbed.images.entries import Directory, File, Symlink
from testbed.images.layers import layer
from testbed.images.oci import Image
from testbed.images.programs import run

REFERENCE = "docker.io/library/busybox:testbed"
PASSWD = b"root:x:0:0:root:/:/bin/sh\nnobody:x:65534:65534:nobody:/:/bin/false\n"
GROUP = b"root:x:0:\nnogroup:x:65534:\n"
NSSWITCH = b"passwd: files\ngroup: files\nhosts: files dns\n"


def busybox_program(cache: Path) -> Path:
    return debian.unpack(["busybox-static"], cache).program("busybox")


def busybox_image(cache: Path) -> Image:
    program = busybox_program(cache)
    applets = run([program, "--list"], to="list the applets of busybox").split()
    return Image(
        reference=REFERENCE,
        layers=(
            layer(
                "busybox-static of Debian, with a link for each applet",
                File("bin/busybox", program, mode=0o755),
                (Symlink(f"bin/{applet}", "busybox") for applet in applets if applet != "busybox"),
                File("etc/passwd", PASSWD),
                File("etc/group", GROUP),
                File("etc/nsswitch.conf", NSSWITCH),
                Directory("tmp", mode=0o1777),
            ),
        ),
        command=("sh",),
        environment={"PATH": "/bin"},
    )
