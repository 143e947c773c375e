"""Admission reviews as a process serves them: the webhook's answers, counted by verdict."""

from collections.abc import Callable
from http import HTTPStatus

from starlette.responses import Response
from starlette.types import ASGIApp

from tessera.admission import Webhook
from tessera.admission.manifests import CLAIM_PATH, PATH
from tessera.apps.serving import make_app
from tessera.scheduler.metrics import Figures

PATHS = (PATH, CLAIM_PATH)
MOST_REVIEW_BYTES = 8 * 2**20
"""An API server takes objects of up to three MiB, and anybody in the cluster may call."""


class Reviews:
    def __init__(self, webhook: Webhook, figures: Figures) -> None:
        self._figures = figures
        self._handle = figures.timed("webhook", webhook.handle)

    async def answer(self, body: bytes) -> bytes | Response:
        answer = await self._handle(body)
        self._figures.reviewed(answer.verdict)
        if answer.status == HTTPStatus.OK:
            return answer.body
        return Response(answer.body, status_code=answer.status, media_type=answer.content_type)

    def app(self, is_ready: Callable[[], bool]) -> ASGIApp:
        """The webhook alone, for whoever can reach it."""
        return make_app(dict.fromkeys(PATHS, self.answer), is_ready=is_ready, most_bytes=MOST_REVIEW_BYTES)
