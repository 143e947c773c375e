"""What was given to whom.

An allocation lists, for every container of the pod in its order (init containers first), the cards it holds. It is
what the annotations carry and what a ledger is rebuilt from.
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
    node: str
    containers: tuple[ContainerShares, ...] = ()

    @property
    def shares(self) -> tuple[CardShare, ...]:
        return tuple(share for container in self.containers for share in container)

    def of_vendor(self, vendor: str) -> "Allocation":
        """The same containers in the same positions, with this vendor's cards only."""
        kept = tuple(tuple(share for share in container if share.vendor == vendor) for container in self.containers)
        return Allocation(self.node, kept)
