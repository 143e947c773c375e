"""Process 1 of a testbed machine: makes the machine's directories its own, reaps orphans, and takes everything down.

Run as a script in fresh namespaces, with nothing but the standard library. It lives as long as its standard input is
open; whoever holds the other end, however that one dies, ends the machine. Then it kills all that is left in its
process namespace and removes the machine's control groups; mounts and network vanish with the namespaces.
"""

import ctypes
import os
import select
import signal
import socket
import sys
import time
from contextlib import suppress
from pathlib import Path

MS_BIND, MS_REC, MS_SHARED = 0x1000, 0x4000, 0x100000
OWN_DIRECTORIES = ("/run", "/var/lib", "/var/log")
CGROUPS = Path("/sys/fs/cgroup")


def main() -> None:
    root, name, cgroup = Path(sys.argv[1]), sys.argv[2], sys.argv[3]
    socket.sethostname(name)
    take_over_directories(root)
    set_up_network()
    make_control_groups(cgroup)
    print("up", flush=True)
    reap_until_standard_input_ends()
    kill_everything()
    remove_control_groups(cgroup)


def take_over_directories(root: Path) -> None:
    """Give the machine empty directories where programs keep their state, and nobody else's."""
    for directory in OWN_DIRECTORIES:
        own = root / directory.lstrip("/")
        own.mkdir(parents=True, exist_ok=True)
        mount(str(own), directory, MS_BIND)
    os.makedirs("/run/lock", exist_ok=True)
    mount("none", "/", MS_REC | MS_SHARED)  # the kubelet passes mounts on to containers


def mount(source: str, target: str, flags: int) -> None:
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.mount(source.encode(), target.encode(), None, flags, None):
        error = ctypes.get_errno()
        raise OSError(error, f"mount of {source} on {target} failed: {os.strerror(error)}")


def set_up_network() -> None:
    """Forward between pods, services and the host, also between two pods on one bridge."""
    for setting in ("ipv4/ip_forward", "ipv4/conf/all/route_localnet", "bridge/bridge-nf-call-iptables"):
        if (path := Path("/proc/sys/net", setting)).exists():
            path.write_text("1")


def hierarchies() -> list[Path]:
    """Where control groups are kept: on version 2 in one place, on version 1 once for each controller."""
    if (CGROUPS / "cgroup.controllers").exists():
        return [CGROUPS]
    return [path for path in CGROUPS.iterdir() if path.is_dir() and not path.is_symlink()]


def make_control_groups(name: str) -> None:
    for hierarchy in hierarchies():
        (hierarchy / name).mkdir(exist_ok=True)
        for inherited in ("cpuset.cpus", "cpuset.mems"):
            if (hierarchy / inherited).exists() and not (hierarchy / "cgroup.controllers").exists():
                (hierarchy / name / inherited).write_text((hierarchy / inherited).read_text())


def reap_until_standard_input_ends() -> None:
    """A dead child wakes the loop through its signal; the end of standard input ends it."""
    readable, writable = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
    signal.set_wakeup_fd(writable, warn_on_full_buffer=False)
    for number in (signal.SIGCHLD, signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: None)
    while True:
        ready, _, _ = select.select([0, readable], [], [])
        if 0 in ready and not os.read(0, 4096):
            return
        if readable in ready:
            os.read(readable, 4096)
        reap()


def reap() -> None:
    """Collect the children that have died."""
    with suppress(ChildProcessError):
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass


def kill_everything() -> None:
    """Kill until nobody is left: what a dying process started in its last moment must go too."""
    while others():
        os.kill(-1, signal.SIGKILL)
        reap()
        time.sleep(0.01)


def others() -> bool:
    return any(entry.isdigit() and entry != "1" for entry in os.listdir("/proc"))


def remove_control_groups(name: str) -> None:
    for hierarchy in hierarchies():
        for directory, _, _ in os.walk(hierarchy / name, topdown=False):
            try:
                os.rmdir(directory)
            except OSError as error:
                print(f"control group {directory} stays: {error.strerror}", file=sys.stderr, flush=True)


if __name__ == "__main__":
    main()
