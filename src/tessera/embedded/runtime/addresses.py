"""An address for each pod, out of this machine's own loopback network.

All of 127/8 is this machine, so every pod can have an address of its own that other pods and the user reach, without
root and without any setting up. There is one network all the same: a server that listens on 0.0.0.0 is reached at its
pod's address, and at every other pod's as well, so two such servers cannot have the same port. One that listens on its
own address, which it finds in the variable POD_IP, has all ports for itself.

Each runtime takes its addresses out of a block of its own, chosen by its name, so that two engines on one machine do
not meet.
"""

import hashlib
from ipaddress import IPv4Address, IPv4Network

from tessera.errors import StartRefused

NETWORK = IPv4Network("127.64.0.0/10")
"""Far from 127.0.0.1 and from 127.0.0.53, which resolvers use."""
SERVICE_NETWORK = IPv4Network("127.128.0.0/10")
"""Where Services have theirs."""
BLOCK_BITS = 12
NODE_ADDRESS = "127.0.0.1"


def own_block(name: str, network: IPv4Network) -> IPv4Network:
    """The same for the same name, and hardly ever another's."""
    blocks = network.num_addresses >> BLOCK_BITS
    chosen = int.from_bytes(hashlib.sha256(name.encode()).digest()[:8], "big") % blocks
    first = network.network_address + (chosen << BLOCK_BITS)
    return IPv4Network(f"{first}/{32 - BLOCK_BITS}")


class Addresses:
    def __init__(self, name: str) -> None:
        self.block = own_block(name, NETWORK)
        self._given: dict[str, IPv4Address] = {}
        self._taken: set[IPv4Address] = set()
        self._next = 0

    def take(self, pod_uid: str, wanted: str = "") -> str:
        """The pod's address; the one it had before, if that is still free."""
        if pod_uid not in self._given:
            address = IPv4Address(wanted) if wanted else None
            if address is None or address not in self.block or address in self._taken:
                address = self._find_free()
            self._given[pod_uid] = address
            self._taken.add(address)
        return str(self._given[pod_uid])

    def give_back(self, pod_uid: str) -> None:
        address = self._given.pop(pod_uid, None)
        if address is not None:
            self._taken.remove(address)

    def _find_free(self) -> IPv4Address:
        """In turn, so that an address is not given to another pod while somebody may still mean the last one."""
        usable = self.block.num_addresses - 2
        for _ in range(usable):
            address = self.block.network_address + 1 + self._next
            self._next = (self._next + 1) % usable
            if address not in self._taken:
                return address
        raise StartRefused(f"all {usable} addresses of {self.block} are taken, expected a free one; delete some pods")
