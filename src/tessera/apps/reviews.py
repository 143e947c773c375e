"""Admission reviews as the process serves them: the webhook's answers, counted by verdict."""

from http import HTTPStatus

from starlette.responses import Response

from tessera.admission import Webhook
from tessera.scheduler.metrics import Figures


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
