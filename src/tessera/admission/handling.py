"""Bytes in, bytes out: what a web server mounts at POST /webhook and at POST /mutate.

Whatever comes, an answer goes out: a review for what can be read as one, and otherwise status 400 with one sentence.
"""

from collections.abc import Mapping
from http import HTTPStatus
from typing import NamedTuple

import structlog

from tessera.admission.reviewing import UNTOUCHED, Denial, Mutation, Untouched, Verdict, review
from tessera.admission.settings import NO_QUOTAS, Quotas, Settings
from tessera.errors import InvalidInput
from tessera.model.admission import Question, Review, decode_review, encode_approval, encode_denial
from tessera.model.catalogue import Catalogue

log: structlog.stdlib.BoundLogger = structlog.get_logger(__name__)
WORDS: Mapping[type[Verdict], str] = {Denial: "denied", Mutation: "changed", Untouched: "untouched"}


class Answer(NamedTuple):
    """`content_type` goes with `body`; `verdict` is one word for it."""

    status: int
    body: bytes
    content_type: str
    verdict: str


class Webhook:
    def __init__(self, catalogue: Catalogue, settings: Settings, quotas: Quotas = NO_QUOTAS) -> None:
        self._catalogue = catalogue
        self._settings = settings
        self._quotas = quotas

    async def handle(self, body: bytes) -> Answer:
        try:
            asked = decode_review(body)
        except InvalidInput as error:
            log.warning("admission review unreadable", error=str(error))
            return Answer(HTTPStatus.BAD_REQUEST, str(error).encode(), "text/plain; charset=utf-8", "unreadable")
        verdict = self._decide(asked.request)
        return Answer(HTTPStatus.OK, _encode(asked, verdict), "application/json", WORDS[type(verdict)])

    def _decide(self, question: Question) -> Verdict:
        is_new_pod = question.operation == "CREATE" and question.kind.kind == "Pod" and not question.sub_resource
        if not is_new_pod:
            return UNTOUCHED
        namespace = question.namespace or ""
        verdict = review(question.object, self._catalogue, self._settings, namespace=namespace, quotas=self._quotas)
        if isinstance(verdict, Denial):
            log.info("pod denied", namespace=namespace, why=verdict.sentence)
        return verdict


def _encode(asked: Review, verdict: Verdict) -> bytes:
    match verdict:
        case Denial(sentence):
            return encode_denial(asked, sentence)
        case Mutation(patch, warnings):
            return encode_approval(asked, patch, warnings)
        case Untouched():
            return encode_approval(asked)
