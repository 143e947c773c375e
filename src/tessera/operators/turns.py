"""Whose turn it is to write: nobody judges by half of what there is, and one of several replicas writes."""

from collections.abc import Callable

from tessera.engine.fencing import Fence
from tessera.kube.client import Client
from tessera.kube.following import Leading
from tessera.kube.reconciler import Again

NOT_YET_S = 0.1
LOOK_AGAIN_S = 1.0
WRITE_S = Fence().write_timeout


class TurnOver(Exception):
    """Another may be writing by now; what was to be written is judged anew when it is our turn again."""


class Turn:
    """Without `leading` nobody else writes."""

    def __init__(self, leading: Leading | None, is_synced: Callable[[], bool]) -> None:
        self._leading = leading
        self._is_synced = is_synced

    @property
    def is_ours(self) -> bool:
        return self._leading is None or self._leading.is_leader

    def hold_back(self) -> Again | None:
        """Judge nothing by half of what there is, and write nothing that another may be writing."""
        if not self._is_synced():
            return Again(NOT_YET_S)
        if self._leading is not None and not self._leading.may_write():
            return Again(LOOK_AGAIN_S)
        return None

    def pen(self, client: Client) -> Client:
        """The client for one write that is sent at once and lands or fails within our term. TurnOver, if that is over.

        Ask for it before each write: reads that came before it may have taken long.
        """
        if self._leading is not None and not self._leading.may_write():
            raise TurnOver
        return client.within(WRITE_S)

    async def take_over(self, mark_all: Callable[[], None]) -> None:
        """Whoever leads anew looks at everything once."""
        while self._leading is not None:
            await self._leading.gained()
            mark_all()
            await self._leading.lost()
