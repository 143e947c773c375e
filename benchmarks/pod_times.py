"""When a watch first showed each pod on a node, and when running: what a client of the API server sees."""

import asyncio
import time
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager

from tessera.kube.caching import Change
from tessera.kube.client import Client, Deletion
from tessera.kube.informer import Informer
from tessera.kube.kinds import PODS, Selection
from tessera.kube.pods import CACHED_PODS, Pod

NAMESPACE = "default"
OURS = Selection(namespace=NAMESPACE)
AT_ONCE = Deletion(grace_s=0)
PATIENCE_S = 60
CLEARED_IN_S = 180.0  # the API server deletes a thousand pods one by one


class PodTimes:
    """By the name of the pod; times are those of `perf_counter`."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self.bound_s: dict[str, float] = {}
        self.running_s: dict[str, float] = {}
        self._left: set[str] = set()
        self._changed = asyncio.Event()

    def note(self, change: Change[Pod]) -> None:
        name, pod = change.key.name, change.after
        if pod is None:
            self._left.add(name)
        else:
            if pod.spec.node_name:
                self.bound_s.setdefault(name, time.perf_counter())
            if pod.status.phase == "Running":
                self.running_s.setdefault(name, time.perf_counter())
        self._changed.set()

    async def until(self, condition: Callable[[], bool]) -> None:
        """Until it holds, and no longer than a minute after the last news."""
        while not condition():
            self._changed.clear()
            await asyncio.wait_for(self._changed.wait(), timeout=PATIENCE_S)

    async def clear(self) -> None:
        """Delete all pods; returns when they are gone."""
        await self._client.within(CLEARED_IN_S).delete_collection(PODS, OURS, how=AT_ONCE)
        await self.until(lambda: self._left >= self.bound_s.keys())


@asynccontextmanager
async def followed_pods(client: Client) -> AsyncGenerator[PodTimes]:
    times, pods = PodTimes(client), Informer(client, CACHED_PODS, OURS)
    pods.subscribe(times.note)
    running = asyncio.create_task(pods.run())
    await pods.synced()
    try:
        yield times
    finally:
        running.cancel()
