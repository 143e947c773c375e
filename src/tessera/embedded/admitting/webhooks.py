"""Webhooks: who is asked about a request, and what becomes of it.

Mutating ones are asked one after the other, each about what the one before made of it. Validating ones are asked at
once, and the first refusal in their order counts.
"""

import asyncio
from collections.abc import Sequence
from http import HTTPStatus
from typing import NamedTuple

import msgspec
import structlog

from tessera.embedded.admitting.calling import Call, CallFailed
from tessera.embedded.admitting.matching import all_hold, compile_conditions, is_exempt, is_named_by, is_selected_by
from tessera.embedded.admitting.registrations import MUTATING, VALIDATING, ReadOnce, Webhook, webhooks_of
from tessera.embedded.admitting.requests import Admitted, Reader, Request
from tessera.embedded.admitting.reviewing import (
    Resolve,
    Response,
    denial,
    endpoint_of,
    read_review,
    variables_of,
    written_review,
)
from tessera.embedded.documents import Document, Frozen
from tessera.embedded.patches.json_patch import json_patch
from tessera.embedded.refusals import ApiRefusal, bad_request, forbidden
from tessera.embedded.rules import Program, RuleBroken, RuleFailed

log = structlog.get_logger()
_WITHOUT_SIDE_EFFECTS = ("None", "NoneOnDryRun")


class Hook(NamedTuple):
    """A webhook with its conditions compiled; `broken` says why they could not be."""

    webhook: Webhook
    conditions: Sequence[Program]
    broken: str = ""

    @property
    def must_answer(self) -> bool:
        return self.webhook.failure_policy == "Fail"


def hooks_of(configuration: Frozen) -> Sequence[Hook]:
    return [_hook(webhook) for webhook in webhooks_of(configuration)]


def _hook(webhook: Webhook) -> Hook:
    try:
        return Hook(webhook, compile_conditions(webhook.match_conditions))
    except RuleBroken as broken:
        return Hook(webhook, (), str(broken))


class Webhooks:
    def __init__(self, reader: Reader, call: Call, resolve: Resolve) -> None:
        self._reader = reader
        self._call = call
        self._resolve = resolve
        self._read = {resource: ReadOnce(hooks_of) for resource in (MUTATING, VALIDATING)}

    async def mutate(self, request: Request) -> Admitted:
        document = _object_of(request)
        warnings: list[str] = []
        for hook in self._registered(MUTATING, request):
            asked = msgspec.structs.replace(request, object=document)
            response = await self._asked(hook, asked) if self._concerns(hook, asked) else None
            if response is not None:
                warnings += response.warnings or ()
                document = _patched(hook, document, response)
        return Admitted(document, warnings)

    async def validate(self, request: Request) -> Sequence[str]:
        concerned = [hook for hook in self._registered(VALIDATING, request) if self._concerns(hook, request)]
        asked = [self._asked(hook, request) for hook in concerned]
        answers = await asyncio.gather(*asked, return_exceptions=True)
        warnings: list[str] = []
        for answer in answers:
            if isinstance(answer, BaseException):
                raise answer
            warnings += (answer.warnings or ()) if answer else ()
        return warnings

    def _registered(self, resource: str, request: Request) -> Sequence[Hook]:
        if is_exempt(request):
            return ()
        hooks = self._read[resource].all(self._reader.list(resource))
        return [hook for of_one in hooks for hook in of_one]

    def _concerns(self, hook: Hook, request: Request) -> bool:
        webhook = hook.webhook
        if not any(is_named_by(rule, request) for rule in webhook.rules):
            return False
        if not is_selected_by(webhook.namespace_selector, webhook.object_selector, request, self._reader):
            return False
        try:
            if hook.broken:
                raise RuleFailed(hook.broken)
            return not hook.conditions or all_hold(hook.conditions, variables_of(request))
        except RuleFailed as why:
            if not hook.must_answer:
                return False
            raise forbidden(request.kind, request.name, f'matchConditions of webhook "{webhook.name}": {why}') from None

    async def _asked(self, hook: Hook, request: Request) -> Response | None:
        """The answer of a webhook that allows; None of one that failed and need not answer."""
        webhook = hook.webhook
        if request.dry_run and webhook.side_effects not in _WITHOUT_SIDE_EFFECTS:
            raise bad_request(f'admission webhook "{webhook.name}" does not support dry run')
        try:
            endpoint = endpoint_of(webhook, self._resolve)
            answered = await self._call(endpoint, written_review(request), webhook.timeout_seconds)
            response = read_review(answered, request.uid)
        except CallFailed as why:
            if hook.must_answer:
                raise _failed(f'failed calling webhook "{webhook.name}": failed to call webhook: {why}') from None
            log.warning("webhook failed and is passed over", webhook=webhook.name, why=str(why))
            return None
        if not response.allowed:
            raise denial(webhook.name, response.status)
        return response


def _object_of(request: Request) -> Document:
    if request.object is None:
        raise ValueError(f"{request.operation} of {request.name} has no object that could be changed")
    return request.object


def _patched(hook: Hook, document: Document, response: Response) -> Document:
    try:
        operations = response.operations()
        return json_patch(document, operations) if operations else document
    except (CallFailed, ApiRefusal) as why:
        if hook.must_answer:
            raise _failed(f'failed calling webhook "{hook.webhook.name}": {why}') from None
        log.warning("webhook answered with a patch that does not apply", webhook=hook.webhook.name, why=str(why))
        return document


def _failed(message: str) -> ApiRefusal:
    return ApiRefusal(HTTPStatus.INTERNAL_SERVER_ERROR, "InternalError", f"Internal error occurred: {message}")
