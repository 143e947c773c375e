"""A device request measured against every kind of card in the fleet.

Whether a kind is acceptable and how much of it the request takes does not depend on what is free, so it is worked out
once per request and kind; a fit then only looks numbers up.
"""

import numpy as np

from tessera.engine.arrays import Bools, Ints
from tessera.engine.fleet import Fleet, Kind
from tessera.model.requests import CardSelector, DeviceRequest

LARGEST = 2**31 - 1
MIG_MODE = "mig"


class Demand:
    """One request, with a column per kind: is it the vendor's, is it accepted, what would it take."""

    __slots__ = ("exclusive", "memory", "mode_matches", "of_vendor", "request", "type_matches", "usable")

    def __init__(self, request: DeviceRequest, kinds: list[Kind]) -> None:
        selector = request.selector
        self.request = request
        self.of_vendor: Bools = np.array([kind.slots > 0 and kind.vendor == request.vendor for kind in kinds])
        self.type_matches: Bools = np.array([accepts_type(selector, kind.model) for kind in kinds])
        self.mode_matches: Bools = np.array([accepts_mode(selector, kind.mode) for kind in kinds])
        self.usable: Bools = self.of_vendor & self.type_matches & self.mode_matches
        self.memory: Ints = np.array([min(request.memory_on(kind.memory_mib), LARGEST) for kind in kinds], np.int32)
        self.exclusive: Bools = np.array([request.cores_percent >= kind.cores_percent for kind in kinds])


def accepts_type(selector: CardSelector, model: str) -> bool:
    model = model.lower()
    if any(word.lower() in model for word in selector.avoid_types):
        return False
    return not selector.use_types or any(word.lower() in model for word in selector.use_types)


def accepts_mode(selector: CardSelector, mode: str) -> bool:
    """A card that is sliced in hardware is given in slices, which is not done yet: until then it is given to nobody."""
    return mode != MIG_MODE and (not selector.mode or mode in selector.mode)


class Demands:
    """The demands seen lately, for the kinds that the fleet has now."""

    def __init__(self, fleet: Fleet, *, limit: int = 4096) -> None:
        self._fleet = fleet
        self._limit = limit
        self._known: dict[DeviceRequest, Demand] = {}
        self._kinds = 0

    def of(self, request: DeviceRequest) -> Demand:
        kinds = self._fleet.kinds
        if len(kinds) != self._kinds or len(self._known) >= self._limit:
            self._known.clear()
            self._kinds = len(kinds)
        demand = self._known.get(request)
        if demand is None:
            demand = self._known[request] = Demand(request, kinds)
        return demand
