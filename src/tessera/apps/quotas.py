"""What a namespace may still take, as admission asks it: the scheduler's ledger knows.

A pod that would pass a quota now is refused where its author sees it. The scheduler asks again before it binds, so
what several pods admitted at once would take together is refused there.
"""

from tessera.engine.quota import check_request
from tessera.model.refusals import Refusal
from tessera.model.requests import PodRequest
from tessera.scheduler.world import World


class LedgerQuotas:
    def __init__(self, world: World) -> None:
        self._world = world

    def check(self, namespace: str, request: PodRequest) -> Refusal | None:
        return check_request(self._world.ledger, namespace, request, self._world.limits_of(namespace))
