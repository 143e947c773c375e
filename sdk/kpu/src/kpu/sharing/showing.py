"""The sender's book of regions that it goes on using itself: those of tensors made with `empty`.

They are shown and not given: nobody fills them again. But the memory must not go while a tensor that refers to it is
on its way, even if the sender has dropped its own: the region is held until the other side lets go of each reference.
So long it counts as memory that this side holds for others.
"""

import weakref
from dataclasses import dataclass, field

from kpu.sharing.allowance import Allowance
from kpu.sharing.regions import Region


@dataclass
class _Shown:
    region: Region
    out: int = 0


@dataclass
class Showing:
    allowance: Allowance
    _numbers: "weakref.WeakKeyDictionary[Region, int]" = field(
        default_factory=lambda: weakref.WeakKeyDictionary[Region, int]()
    )
    _held: dict[int, _Shown] = field(default_factory=dict[int, _Shown])

    def number_of(self, region: Region) -> int | None:
        """Under which number the other side knows the region, if it does."""
        return self._numbers.get(region)

    def enter(self, number: int, region: Region) -> None:
        self._numbers[region] = number

    def hold(self, number: int, region: Region) -> bool:
        """One more tensor is to refer to the region; says whether that much may be held."""
        if number not in self._held:
            if not self.allowance.take_once(region):
                return False
            self._held[number] = _Shown(region)
        self._held[number].out += 1
        return True

    def let_go(self, number: int) -> None:
        """The other side has one tensor fewer there."""
        shown = self._held.get(number)
        if shown is None:
            return
        shown.out -= 1
        if shown.out <= 0:
            self._part_with(number)

    def close(self) -> None:
        for number in list(self._held):
            self._part_with(number)
        self._numbers.clear()

    def _part_with(self, number: int) -> None:
        self.allowance.give_back_once(self._held.pop(number).region)
