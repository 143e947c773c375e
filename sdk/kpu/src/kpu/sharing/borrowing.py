"""The receiver's book: regions of the other side that are mapped here, and how many tensors lie in each.

A mapping outlives the tensor that lay in it, because the sender fills the region again for the next one. It ends when
the sender forgets the region and the last tensor is gone. Count and bytes are bounded, for one peer and for all of
them: they cannot make us map, and so keep alive, more than that.
"""

from dataclasses import dataclass, field

from kpu.errors import MalformedMessage
from kpu.sharing.allowance import Allowance
from kpu.sharing.mappings import Bytes, view_again


@dataclass
class _Borrowed:
    memory: Bytes
    tensors: int = 0
    forgotten: bool = False


@dataclass
class Borrowing:
    allowance: Allowance
    regions_limit: int
    _regions: dict[int, _Borrowed] = field(default_factory=dict[int, _Borrowed])

    @property
    def mapped_bytes(self) -> int:
        return sum(region.memory.nbytes for region in self._regions.values())

    def has_room_for(self, number: int, size: int) -> bool:
        """Whether one more may be mapped. If so it is counted, and must be entered or refused."""
        return number not in self._regions and len(self._regions) < self.regions_limit and self.allowance.take(size)

    def enter(self, number: int, memory: Bytes) -> None:
        """Note a region, for which there was room."""
        self._regions[number] = _Borrowed(memory)

    def refuse(self, size: int) -> None:
        """The region for which there was room is not mapped."""
        self.allowance.give_back(size)

    def view(self, number: int, offset: int, nbytes: int) -> Bytes:
        """The bytes of one tensor, writable, where the sender put them."""
        region = self._regions.get(number)
        if region is None or region.forgotten:
            raise MalformedMessage(
                f"shared region {number} is unknown here, expected one that was offered and accepted"
            )
        if offset < 0 or nbytes < 0 or offset + nbytes > region.memory.nbytes:
            raise MalformedMessage(
                f"shared region {number} has {region.memory.nbytes} bytes, but a tensor is said to take {nbytes} of "
                f"them from {offset}"
            )
        region.tensors += 1
        return view_again(region.memory.data, offset, nbytes)

    def size_of(self, number: int) -> int:
        region = self._regions.get(number)
        return region.memory.nbytes if region else 0

    def let_go(self, number: int) -> None:
        """One tensor that lay in the region is gone."""
        region = self._regions.get(number)
        if region:
            region.tensors -= 1
            self._drop_if_unused(number, region)

    def forget(self, number: int) -> None:
        """The sender will not refer to the region again."""
        region = self._regions.get(number)
        if region:
            region.forgotten = True
            self._drop_if_unused(number, region)

    def close(self) -> None:
        for number in list(self._regions):
            self._drop(number)

    def _drop_if_unused(self, number: int, region: _Borrowed) -> None:
        if region.forgotten and region.tensors <= 0:
            self._drop(number)

    def _drop(self, number: int) -> None:
        self.allowance.give_back(self._regions.pop(number).memory.nbytes)
