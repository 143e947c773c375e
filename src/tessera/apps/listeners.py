"""Where the scheduler's process listens, and what each listener shows.

kube-scheduler asks on loopback, the API server asks from everywhere, Prometheus too. So each of them can be given an
address that shows only what it is for. Webhook and metrics are served by every replica, whoever decides.
"""

from typing import Protocol

from starlette.types import ASGIApp

from tessera.admission import DEFAULT_SETTINGS, Webhook
from tessera.apps.addresses import Address
from tessera.apps.extender_options import Options
from tessera.apps.quotas import LedgerQuotas
from tessera.apps.reviews import PATHS, Reviews
from tessera.apps.scheduler_pages import SchedulerPages
from tessera.apps.secure_listener import SecureListener
from tessera.apps.serving import Handler, Listener, either, make_app
from tessera.apps.working import Work
from tessera.kube.client import Client
from tessera.scheduler.extender import Extender
from tessera.scheduler.hami_metrics import HamiPage
from tessera.scheduler.metrics import Figures
from tessera.scheduler.volcano import Volcano
from tessera.scheduler.world import World


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
        self._pages = SchedulerPages(served.world, served.figures, served.page)
        self._https = SecureListener(options.https) if options.https else None
        self._webhook = SecureListener(options.webhook) if options.webhook else None

    def all(self) -> list[Listener]:
        everything, options = self._everything(), self._options
        return [
            *_plain(options.http, everything),
            *([self._https.showing(everything)] if self._https else []),
            *([self._webhook.showing(self._reviews.app(self.is_serving))] if self._webhook else []),
            *_plain(options.metrics, self._figures_alone()),
        ]

    def works(self) -> list[Work]:
        """What keeps the certificates that are shown."""
        return [secure.keep(self._client) for secure in (self._https, self._webhook) if secure is not None]

    def is_serving(self) -> bool:
        """Whether this replica can answer the API server, whoever of them decides."""
        return self._served.has_read_all() and (self._webhook is None or self._webhook.has_certificate)

    def _everything(self) -> ASGIApp:
        posts = {**self._verbs(), **dict.fromkeys(PATHS, self._reviews.answer)}
        return make_app(posts, is_ready=self._served.decides, pages=self._pages.all())

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

    def _figures_alone(self) -> ASGIApp:
        return make_app(is_ready=self.is_serving, pages=self._pages.all())


def _plain(address: Address | None, app: ASGIApp) -> list[Listener]:
    return [Listener(app, *address)] if address else []


def _verb(path: str) -> str:
    return path.removeprefix("/").partition("?")[0]
