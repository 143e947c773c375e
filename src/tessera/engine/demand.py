"""A device request measured against every kind of card in the fleet.

Whether a kind is acceptable and how much of it the request takes does not depend on what is free, so it is worked out
once per request and kind; a fit then only looks numbers up.
"""

import numpy as np
from msgspec.structs import replace

from tessera.engine.arrays import Bools, Ints
from tessera.engine.fleet import Fleet, Kind
from tessera.model.requests import CardSelector, ClaimRequest, DeviceRequest

LARGEST = 2**31 - 1
MIG_MODE = "mig"


class Demand:
    """One request, with a column per kind: is it the vendor's, is it accepted, what would it take."""

    __slots__ = (
        "cores",
        "exclusive",
        "memory",
        "mode_matches",
        "of_vendor",
        "request",
        "takes_cores",
        "type_matches",
        "usable",
    )

    def __init__(self, request: DeviceRequest, kinds: list[Kind]) -> None:
        selector = request.selector
        self.request = request
        self.of_vendor: Bools = np.array([kind.slots > 0 and kind.vendor == request.vendor for kind in kinds])
        self.type_matches: Bools = np.array([accepts_type(selector, kind.model) for kind in kinds])
        self.mode_matches: Bools = np.array([accepts_mode(selector, kind.mode) for kind in kinds])
        self.usable: Bools = self.of_vendor & self.type_matches & self.mode_matches
        self.memory: Ints = np.array([min(request.memory_on(kind.memory_mib), LARGEST) for kind in kinds], np.int32)
        self.cores: Ints = np.full(len(kinds), min(request.cores_percent, LARGEST), np.int32)
        self.takes_cores = request.cores_percent > 0
        self.exclusive: Bools = np.array([request.cores_percent >= kind.cores_percent for kind in kinds])


class WholeCards(Demand):
    """Cards for one pod alone: it is charged all that each of them has, so that nothing is left for anybody.

    What the card has is no hurdle then. That nobody else uses it is for whoever looks for it to see.
    """

    __slots__ = ()

    def __init__(self, request: DeviceRequest, kinds: list[Kind]) -> None:
        super().__init__(replace(request, memory_mib=0, memory_percent=0, cores_percent=0), kinds)
        self.memory = np.array([kind.memory_mib for kind in kinds], np.int32)
        self.cores = np.array([kind.cores_percent for kind in kinds], np.int32)
        self.takes_cores = True


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
        self._known: dict[DeviceRequest | ClaimRequest, Demand] = {}
        self._kinds = 0

    def of(self, request: DeviceRequest) -> Demand:
        self._forget_stale()
        demand = self._known.get(request)
        if demand is None:
            demand = self._known[request] = Demand(request, self._fleet.kinds)
        return demand

    def of_claim(self, claim: ClaimRequest) -> Demand:
        if not claim.is_exclusive:
            return self.of(claim.card)
        self._forget_stale()
        demand = self._known.get(claim)
        if demand is None:
            demand = self._known[claim] = WholeCards(claim.card, self._fleet.kinds)
        return demand

    def _forget_stale(self) -> None:
        kinds = len(self._fleet.kinds)
        if kinds != self._kinds or len(self._known) >= self._limit:
            self._known.clear()
            self._kinds = kinds
