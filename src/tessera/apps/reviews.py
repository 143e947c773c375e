"""Admission reviews as the process serves them: the webhook's answers, counted by verdict."""

import msgspec
from starlette.responses import Response

from tessera.admission import Webhook
from tessera.admission.handling import Answer
from tessera.scheduler.metrics import Figures


class _Verdict(msgspec.Struct, frozen=True):
    allowed: bool
    patch: str | None = None


class _Review(msgspec.Struct, frozen=True):
    response: _Verdict


class Reviews:
    def __init__(self, webhook: Webhook, figures: Figures) -> None:
        self._figures = figures
        self._handle = figures.timed("webhook", webhook.handle)

    async def answer(self, body: bytes) -> Response:
        answer = await self._handle(body)
        self._figures.reviewed(verdict_of(answer))
        return Response(answer.body, status_code=answer.status, media_type=answer.content_type)


def verdict_of(answer: Answer) -> str:
    """One word, as the API server will understand the answer."""
    try:
        said = msgspec.json.decode(answer.body, type=_Review).response
    except msgspec.MsgspecError:
        return "unreadable"
    if not said.allowed:
        return "denied"
    return "changed" if said.patch else "untouched"
