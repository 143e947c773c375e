"""Why nodes cannot take a pod, as sentences kept from one question to the next.

A waiting pod is asked about again and again, and of thousands of nodes hardly any has changed in between. To make a
sentence costs more than to decide, so each is kept until its row changes. None names its node: whoever shows them
counts the nodes that say the same.
"""

import sys
from collections import OrderedDict
from collections.abc import Callable, Iterable

import numpy as np
from msgspec.structs import replace

from tessera.engine.arrays import Rows
from tessera.engine.fleet import Fleet
from tessera.model.refusals import Refusal, render
from tessera.model.requests import PodRequest

MOST_SENTENCES = 200_000

Explain = Callable[[Rows], Iterable[Refusal]]


class _Said:
    """What was said of one request: the sentence of each row, and up to which change of the fleet it holds."""

    __slots__ = ("by_row", "layout", "seen")

    def __init__(self, layout: int) -> None:
        self.by_row: dict[int, str] = {}
        self.layout = layout
        self.seen = -1


class Sentences:
    def __init__(self, fleet: Fleet, *, most: int = MOST_SENTENCES) -> None:
        self._fleet = fleet
        self._most = most
        self._kept = 0
        self._said: OrderedDict[PodRequest, _Said] = OrderedDict()

    def of(self, request: PodRequest, rows: Rows, explain: Explain) -> list[str]:
        """One sentence for each row; `explain` is asked about those of which none is known that still holds."""
        said = self._current(request)
        wanted: list[int] = rows.tolist()
        new = [row for row in wanted if row not in said.by_row] if said.by_row else wanted
        if new:
            told = map(sys.intern, map(_render_alone, explain(np.array(new, np.intp))))  # many say the same
            said.by_row |= zip(new, told, strict=True)
            self._kept += len(new)
            self._make_room(request)
        return list(map(said.by_row.__getitem__, wanted))

    def _current(self, request: PodRequest) -> _Said:
        fleet, said = self._fleet, self._said.get(request)
        if said is None or said.layout != fleet.layout:
            self._forget(request)
            said = self._said[request] = _Said(fleet.layout)
        self._said.move_to_end(request)
        if said.seen != fleet.sequence:
            for row in (fleet.changed_at > said.seen).nonzero()[0].tolist() if said.by_row else ():
                if said.by_row.pop(row, None) is not None:
                    self._kept -= 1
            said.seen = fleet.sequence
        return said

    def _make_room(self, asked: PodRequest) -> None:
        while self._kept > self._most and next(iter(self._said)) != asked:
            self._forget(next(iter(self._said)))

    def _forget(self, request: PodRequest) -> None:
        said = self._said.pop(request, None)
        if said is not None:
            self._kept -= len(said.by_row)


def _render_alone(refusal: Refusal) -> str:
    return render(replace(refusal, where=""))
