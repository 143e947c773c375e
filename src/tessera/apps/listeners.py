"""Where the scheduler's process listens, and what each listener shows.

kube-scheduler asks on loopback, the API server asks from everywhere, Prometheus too. So each of them can be given an
address that shows only what it is for. Webhook and metrics are served by every replica, whoever decides.
"""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Protocol

import msgspec
from prometheus_client import generate_latest
from prometheus_client.exposition import CONTENT_TYPE_LATEST
from starlette.responses import Response, StreamingResponse
from starlette.types import ASGIApp

from tessera.admission import DEFAULT_SETTINGS, Webhook
from tessera.admission.certificates import Keeper, ServingContext, follow_files
from tessera.admission.manifests import PATH
from tessera.apps.addresses import Address
from tessera.apps.extender_options import Options, SecureAddress
from tessera.apps.quotas import LedgerQuotas
from tessera.apps.reviews import Reviews
from tessera.apps.serving import Handler, Listener, Page, either, make_app
from tessera.apps.working import Work
from tessera.kube.client import Client
from tessera.scheduler.extender import Extender
from tessera.scheduler.hami_metrics import HamiPage
from tessera.scheduler.ledger_document import ledger_document
from tessera.scheduler.metrics import Figures
from tessera.scheduler.volcano import Volcano
from tessera.scheduler.world import World

MOST_REVIEW_BYTES = 8 * 2**20
"""An API server takes objects of up to three MiB, and anybody in the cluster may call."""


class Served(Protocol):
    """What a process has to show."""

    @property
    def world(self) -> World: ...
    @property
    def extender(self) -> Extender: ...
    @property
    def volcano(self) -> Volcano: ...
    @property
    def figures(self) -> Figures: ...
    @property
    def page(self) -> HamiPage: ...
    def has_read_all(self) -> bool: ...
    def decides(self) -> bool: ...


class Listeners:
    def __init__(self, client: Client, options: Options, served: Served) -> None:
        self._client = client
        self._options = options
        self._served = served
        webhook = Webhook(served.world.catalogue, DEFAULT_SETTINGS, LedgerQuotas(served.world))
        self._reviews = Reviews(webhook, served.figures)
        self._certificate = ServingContext()
        self._webhook_certificate = ServingContext()

    def all(self) -> list[Listener]:
        everything, options = self._everything(), self._options
        return [
            *_plain(options.http, everything),
            *_secure(options.https, everything, self._certificate),
            *_secure(options.webhook, self._webhook_alone(), self._webhook_certificate),
            *_plain(options.metrics, self._figures_alone()),
        ]

    def works(self) -> list[Work]:
        """What keeps the certificates that are shown."""
        shown = ((self._options.https, self._certificate), (self._options.webhook, self._webhook_certificate))
        return [self._keep(where, context) for where, context in shown if where is not None]

    def is_serving(self) -> bool:
        """Whether this replica can answer the API server, whoever of them decides."""
        has_certificate = self._options.webhook is None or self._webhook_certificate.shown is not None
        return self._served.has_read_all() and has_certificate

    def _everything(self) -> ASGIApp:
        posts = {**self._verbs(), PATH: self._reviews.answer}
        return make_app(posts, is_ready=self._served.decides, pages=self._pages())

    def _verbs(self) -> dict[str, Handler]:
        """kube-scheduler's at the root, Volcano's below its name and at the root where nobody else has the word."""
        served, timed = self._served, self._served.figures.timed
        volcano = {verb: timed(f"volcano-{verb}", handler) for verb, handler in served.volcano.verbs.items()}
        ours = {path: timed(_verb(path), handler) for path, handler in served.extender.verbs.items()}
        return {
            **{f"/{verb}": handler for verb, handler in volcano.items()},
            **{f"/volcano/{verb}": handler for verb, handler in volcano.items()},
            **ours,
            "/prioritize": either(ours["/prioritize"], volcano["prioritize"]),
        }

    def _webhook_alone(self) -> ASGIApp:
        return make_app({PATH: self._reviews.answer}, is_ready=self.is_serving, most_bytes=MOST_REVIEW_BYTES)

    def _figures_alone(self) -> ASGIApp:
        return make_app(is_ready=self.is_serving, pages=self._pages())

    def _pages(self) -> dict[str, Page]:
        return {"/metrics": self._show_metrics, "/ledger": self._show_ledger}

    async def _show_metrics(self) -> Response:
        return StreamingResponse(self._metrics(), media_type=CONTENT_TYPE_LATEST)

    async def _metrics(self) -> AsyncIterator[bytes]:
        yield generate_latest(self._served.figures.registry)
        async for part in self._served.page.text():
            yield part.encode()

    async def _show_ledger(self) -> Response:
        document = msgspec.json.encode(ledger_document(self._served.world))
        return Response(document, media_type="application/json")

    def _keep(self, where: SecureAddress, context: ServingContext) -> Work:
        if isinstance(where.certificate, Path):
            return follow_files(where.certificate, context)
        return Keeper(self._client, where.certificate, context).run()


def _plain(address: Address | None, app: ASGIApp) -> list[Listener]:
    return [Listener(app, *address)] if address else []


def _secure(where: SecureAddress | None, app: ASGIApp, certificate: ServingContext) -> list[Listener]:
    return [Listener(app, *where.address, certificate.context)] if where else []


def _verb(path: str) -> str:
    return path.removeprefix("/").partition("?")[0]
