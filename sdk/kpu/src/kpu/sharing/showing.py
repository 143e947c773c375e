"""The sender's book of regions that it goes on using itself: those of tensors made with `empty`.

They are shown and not given: nobody fills them again. But the memory must not go while a tensor that refers to it is
on its way, even if the sender has dropped its own: the region is held until the other side lets go of each reference.
"""

import weakref
from dataclasses import dataclass, field

from kpu.sharing.regions import Region


@dataclass
class _Shown:
    region: Region
    out: int = 0


@dataclass
class Showing:
    _numbers: "weakref.WeakKeyDictionary[Region, int]" = field(
        default_factory=lambda: weakref.WeakKeyDictionary[Region, int]()
    )
    _held: dict[int, _Shown] = field(default_factory=dict[int, _Shown])

    def number_of(self, region: Region) -> int | None:
        """Under which number the other side knows the region, if it does."""
        return self._numbers.get(region)

    def enter(self, number: int, region: Region) -> None:
        self._numbers[region] = number

    def hold(self, number: int, region: Region) -> None:
        """One more tensor refers to the region."""
        self._held.setdefault(number, _Shown(region)).out += 1

    def let_go(self, number: int) -> None:
        """The other side has one tensor fewer there."""
        shown = self._held.get(number)
        if shown is None:
            return
        shown.out -= 1
        if shown.out <= 0:
            del self._held[number]

    def close(self) -> None:
        self._held.clear()
        self._numbers.clear()
