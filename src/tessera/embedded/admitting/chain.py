"""The chain itself: what is asked of whom, in which order."""

from collections.abc import Callable, Sequence
from random import Random

import msgspec

from tessera.embedded.admitting.calling import Call, post
from tessera.embedded.admitting.namespaces import check_namespace
from tessera.embedded.admitting.policies import Policies
from tessera.embedded.admitting.priorities import resolve_priority
from tessera.embedded.admitting.quotas import Charge, charges
from tessera.embedded.admitting.requests import Admitted, Reader, Request
from tessera.embedded.admitting.reviewing import Resolve
from tessera.embedded.admitting.service_accounts import give_account
from tessera.embedded.admitting.webhooks import Webhooks
from tessera.embedded.documents import Document

PODS = "pods"
_LETTERS = "bcdfghjklmnpqrstvwxz2456789"
_SUFFIX_LENGTH = 5


def _random_suffix() -> str:
    return "".join(Random().choices(_LETTERS, k=_SUFFIX_LENGTH))


class Admission:
    """Refuses by ApiRefusal, and warns of what is let through."""

    def __init__(
        self, reader: Reader, resolve: Resolve, *, call: Call = post, suffix: Callable[[], str] = _random_suffix
    ) -> None:
        self._reader = reader
        self._webhooks = Webhooks(reader, call, resolve)
        self._policies = Policies(reader)
        self._suffix = suffix

    async def mutate(self, request: Request) -> Admitted:
        """What is to be stored of a creation or an update; what was sent is left as it was."""
        check_namespace(request, self._reader)
        if request.object is not None and request.creates(PODS):
            request = msgspec.structs.replace(request, object=self._completed(request, request.object))
        return await self._webhooks.mutate(request)

    def _completed(self, request: Request, pod: Document) -> Document:
        pod = give_account(request, pod, self._reader, self._suffix())
        return resolve_priority(request, pod, self._reader)

    async def validate(self, request: Request) -> Sequence[str]:
        """Warnings about what is about to be stored, or to go."""
        if request.operation == "DELETE":
            check_namespace(request, self._reader)
        return [*self._policies.validate(request), *await self._webhooks.validate(request)]

    def charges(self, request: Request) -> Sequence[Charge]:
        """What quotas are to say once the request is stored, in the same breath: nothing may come in between."""
        return charges(request, self._reader)
