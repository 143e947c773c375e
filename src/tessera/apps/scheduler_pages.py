"""What a scheduler shows to whoever looks: Prometheus and people."""

from collections.abc import AsyncIterator

import msgspec
from prometheus_client import generate_latest
from prometheus_client.exposition import CONTENT_TYPE_LATEST
from starlette.responses import Response, StreamingResponse

from tessera.apps.serving import Page
from tessera.scheduler.hami_metrics import HamiPage
from tessera.scheduler.ledger_document import ledger_document
from tessera.scheduler.metrics import Figures
from tessera.scheduler.world import World


class SchedulerPages:
    def __init__(self, world: World, figures: Figures, hami: HamiPage) -> None:
        self._world = world
        self._figures = figures
        self._hami = hami

    def all(self) -> dict[str, Page]:
        return {"/metrics": self._show_metrics, "/ledger": self._show_ledger}

    async def _show_metrics(self) -> Response:
        return StreamingResponse(self._metrics(), media_type=CONTENT_TYPE_LATEST)

    async def _metrics(self) -> AsyncIterator[bytes]:
        yield generate_latest(self._figures.registry)
        async for part in self._hami.text():
            yield part.encode()

    async def _show_ledger(self) -> Response:
        return Response(msgspec.json.encode(ledger_document(self._world)), media_type="application/json")
