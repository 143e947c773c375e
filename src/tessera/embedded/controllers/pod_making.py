"""Making and removing pods for whoever manages them, each once.

Pods are made in batches that double: where the first is refused (a quota, a webhook), the others are not tried, and an
event of whoever wanted them says why.
"""

import asyncio
import time
from collections.abc import Sequence
from typing import Any

from tessera.embedded.controllers.expectations import Expectations, Outcome
from tessera.embedded.controllers.objects import Metadata, reference_to
from tessera.embedded.controllers.pods import PODS, Pod
from tessera.embedded.controllers.writes import Create, carry_out_one, delete
from tessera.errors import ApiError, ServerFailed
from tessera.kube.client import Client
from tessera.kube.events import Recorder
from tessera.kube.informer import Informer
from tessera.kube.kinds import Kind
from tessera.kube.objects import Document, ObjectKey
from tessera.kube.timing import Backoff

MOST_AT_ONCE = 64
RETRIES = Backoff(first_s=0.05, most_s=15.0)
"""How soon is tried again what was refused: whoever raises a quota waits for it."""


class PodMaking:
    """For those of one kind. What was asked for counts as expected until the cache of pods shows it."""

    def __init__(self, client: Client, kind: Kind[Any], pods: Informer[Pod], recorder: Recorder) -> None:
        self._client = client
        self._kind = kind
        self._recorder = recorder
        self._pods = pods
        self._expectations = Expectations(time.monotonic)
        pods.subscribe(self._expectations.see)

    def wait_s(self, asker: ObjectKey) -> float:
        """How long to wait at most until the cache has everything that was asked for; 0, if it has."""
        return self._expectations.wait_s(asker)

    async def make(self, owner: Metadata, pods: Sequence[Document]) -> ApiError | None:
        """The first refusal, if there was one: then not all have been made."""
        refusal = await self._make(owner.key, pods)
        if refusal is not None:
            about = reference_to(self._kind, owner)
            self._recorder.warning(about, "FailedCreate", f"Error creating: {refusal.message}")
        return refusal

    async def _make(self, asker: ObjectKey, pods: Sequence[Document]) -> ApiError | None:
        done, batch = 0, 1
        while done < len(pods):
            tried = pods[done : done + batch]
            refusals = await asyncio.gather(*(self._make_one(asker, pod) for pod in tried))
            refusal = next((one for one in refusals if one is not None), None)
            if refusal is not None:
                return refusal
            done, batch = done + len(tried), min(batch * 2, MOST_AT_ONCE)
        return None

    async def remove(self, asker: ObjectKey, pods: Sequence[Pod]) -> None:
        for start in range(0, len(pods), MOST_AT_ONCE):
            await asyncio.gather(*(self._remove_one(asker, pod) for pod in pods[start : start + MOST_AT_ONCE]))

    async def _make_one(self, asker: ObjectKey, pod: Document) -> ApiError | None:
        """Where the answer is lost, or is that something failed, the pod may have been made, and stays expected."""
        key = ObjectKey(asker.namespace, pod["metadata"]["name"])
        self._expectations.expect(asker, key, Outcome.MADE)
        try:
            is_made = await carry_out_one(self._client, Create(PODS, key, pod))
        except ServerFailed as error:
            return error
        except ApiError as error:
            self._expectations.cancel(key, Outcome.MADE)
            return error
        if not is_made:
            self._expectations.cancel(key, Outcome.MADE)
        return None

    async def _remove_one(self, asker: ObjectKey, pod: Pod) -> None:
        key = pod.metadata.key
        self._expectations.expect(asker, key, Outcome.GOING)
        try:
            await carry_out_one(self._client, delete(PODS, pod.metadata))
        finally:
            if self._is_going(pod):  # it may have been before we asked, and nothing more will be told of it
                self._expectations.cancel(key, Outcome.GOING)

    def _is_going(self, pod: Pod) -> bool:
        cached = self._pods.get(pod.metadata.key)
        return cached is None or cached.metadata.uid != pod.metadata.uid or cached.metadata.is_going
