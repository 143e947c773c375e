"""The webhook's process: it answers the API server about pods on their way in, and does nothing else.

It keeps no ledger, so it cannot tell what a namespace holds. A pod that would pass a quota is admitted here, and the
scheduler, which asks again before it binds, lets it wait.
"""

from pathlib import Path

from tessera.admission import DEFAULT_SETTINGS, Webhook
from tessera.apps.addresses import read_address
from tessera.apps.reviews import Reviews
from tessera.apps.secure_listener import SecureListener
from tessera.apps.serving import Listener, make_app, serve_all
from tessera.apps.webhook_flags import WebhookFlags
from tessera.apps.webhook_options import read_webhook
from tessera.apps.working import running
from tessera.errors import InvalidRequest
from tessera.kube.access import find_access
from tessera.kube.client import Client
from tessera.scheduler.metrics import Figures
from tessera.vendors.loading import load_catalogue


class Flags(WebhookFlags):
    """As click gives them. Empty is as good as not there."""

    kubeconfig: Path | None
    metrics: str


async def run(flags: Flags) -> None:
    """Ready as soon as there is a certificate to show."""
    where, metrics = read_webhook(flags), read_address("--metrics", flags["metrics"])
    if where is None:
        raise InvalidRequest("nothing is served, expected --webhook with a certificate; name the address")
    secure, figures = SecureListener(where), Figures()
    reviews = Reviews(Webhook(load_catalogue(), DEFAULT_SETTINGS), figures)

    def is_ready() -> bool:
        return secure.has_certificate

    listeners = [secure.showing(reviews.app(is_ready))]
    if metrics is not None:
        listeners.append(Listener(make_app(is_ready=is_ready, metrics=figures.registry), *metrics))
    async with Client(find_access(flags["kubeconfig"])) as client, running(secure.keep(client)):
        await serve_all(*listeners)
