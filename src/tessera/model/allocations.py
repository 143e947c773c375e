"""What was given to whom.

An allocation lists, for every container of the pod in its order (init containers first), the cards it holds, and the
cards that the pod holds as a whole by a claim. It is what the annotations carry and what a ledger is rebuilt from.
"""

import msgspec


class CardShare(msgspec.Struct, frozen=True, kw_only=True):
    """A part of one card. `vendor` is the common word that annotations use as the type."""

    uuid: str
    vendor: str
    memory_mib: int
    cores_percent: int


ContainerShares = tuple[CardShare, ...]


class Allocation(msgspec.Struct, frozen=True):
    """`claimed` are seen by all containers, and are charged once."""

    node: str
    containers: tuple[ContainerShares, ...] = ()
    claimed: ContainerShares = ()

    @property
    def shares(self) -> tuple[CardShare, ...]:
        return (*(share for container in self.containers for share in container), *self.claimed)

    def of_vendor(self, vendor: str) -> "Allocation":
        """The same containers in the same positions, with this vendor's cards only."""
        kept = tuple(_of_vendor(container, vendor) for container in self.containers)
        return Allocation(self.node, kept, _of_vendor(self.claimed, vendor))


def _of_vendor(shares: ContainerShares, vendor: str) -> ContainerShares:
    return tuple(share for share in shares if share.vendor == vendor)
