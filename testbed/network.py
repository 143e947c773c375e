"""Addresses of a machine: a link to the host and ranges for pods and services, different for every machine.

They are taken from 198.18.0.0/15, the range set aside for tests (RFC 2544), so they meet nobody else's. The host has
routes to pods and services; links and routes vanish with the machine's network namespace.
"""

import subprocess
from typing import NamedTuple

from testbed.requirements import TestbedFailed


class Addresses(NamedTuple):
    """The addresses of machine number `slot` (0 to 63)."""

    slot: int

    @property
    def link(self) -> str:
        return f"tessera{self.slot}"

    @property
    def host(self) -> str:
        return f"198.18.{self.slot}.1"

    @property
    def machine(self) -> str:
        return f"198.18.{self.slot}.2"

    @property
    def services(self) -> str:
        return f"198.18.{128 + self.slot}.0/24"

    @property
    def kubernetes_service(self) -> str:
        return f"198.18.{128 + self.slot}.1"

    @property
    def dns_service(self) -> str:
        return f"198.18.{128 + self.slot}.10"

    @property
    def pods(self) -> str:
        return f"198.19.{self.slot}.0/24"

    @property
    def simulated_pods(self) -> str:
        """For pods that never run; larger than all others, because there may be thousands."""
        return "198.19.128.0/17"


def connect(addresses: Addresses, pid: int) -> None:
    """Join the machine whose first process is `pid` to the host."""
    link = addresses.link
    _ip("link", "add", link, "type", "veth", "peer", "name", "eth0", "netns", str(pid))
    _ip("address", "add", f"{addresses.host}/24", "dev", link)
    _ip("link", "set", link, "up")
    inside = ["nsenter", f"--net=/proc/{pid}/ns/net", "ip"]
    _run(*inside, "link", "set", "lo", "up")
    _run(*inside, "address", "add", f"{addresses.machine}/24", "dev", "eth0")
    _run(*inside, "link", "set", "eth0", "up")
    _run(*inside, "route", "add", "default", "via", addresses.host)
    for destination in (addresses.services, addresses.pods):
        _ip("route", "replace", destination, "via", addresses.machine, "dev", link)


def disconnect(addresses: Addresses) -> None:
    """Remove a link that a machine left behind because the kernel has not yet got round to it."""
    subprocess.run(["ip", "link", "delete", addresses.link], capture_output=True, check=False)


def _ip(*arguments: str) -> None:
    _run("ip", *arguments)


def _run(*command: str) -> None:
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise TestbedFailed(f"`{' '.join(command)}` failed: {done.stderr.strip()}")
