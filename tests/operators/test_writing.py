"""When a status is written, and when not: by what an operator sends, not by what comes of it."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest

from tessera.errors import Conflict
from tessera.kube.access import find_access
from tessera.kube.client import Client
from tessera.kube.kinds import GPU_CLAIMS, Kind
from tests.operators.conftest import Engine
from tests.operators.life import Life, operating, until

pytestmark = pytest.mark.asyncio


class Witness(Client):
    """Notes what becomes of each status that is written. `before_write` and `before_pods` are waited for first."""

    def __init__(self, engine: Engine) -> None:
        super().__init__(find_access(engine.kubeconfig))
        self.outcomes: list[str] = []
        self.before_write: Callable[[], Awaitable[None]] | None = None
        self.before_pods = asyncio.Event()
        self.before_pods.set()

    async def patch(self, kind: Kind[Any], name: str, body: Any, **how: Any) -> Any:
        if how.get("subresource") != "status":
            return await super().patch(kind, name, body, **how)
        if self.before_write:
            await self.before_write()
        try:
            written = await super().patch(kind, name, body, **how)
        except Conflict:
            self.outcomes.append("refused")
            raise
        self.outcomes.append("landed")
        return written

    @asynccontextmanager
    async def watch(self, kind: Kind[Any], *which: Any, **how: Any) -> AsyncIterator[Any]:
        if kind.plural == "pods":
            await self.before_pods.wait()
        async with super().watch(kind, *which, **how) as events:
            yield events


async def test_nothing_is_written_while_nothing_changes(engine: Engine, api: Client, namespace: str):
    life = Life(api, namespace)
    await life.claim()
    await life.pod("web")
    await life.bind("web", "node-a:0")
    async with operating(api, namespace):
        await life.phase("Bound")
    async with Witness(engine) as witness, operating(witness, namespace) as operator:
        await until(lambda: operator.claims.counts.done)
        assert witness.outcomes == []


async def test_nothing_is_judged_by_half_of_what_there_is(engine: Engine, api: Client, namespace: str):
    life = Life(api, namespace)
    await life.claim()
    await life.pod("web")
    await life.bind("web", "node-a:0")
    async with Witness(engine) as witness:
        witness.before_pods.clear()
        async with operating(witness, namespace) as operator:
            await until(lambda: operator.claims.counts.again)
            assert witness.outcomes == []
            witness.before_pods.set()
            assert (await life.phase("Bound"))["podName"] == "web"
            await until(lambda: witness.outcomes)  # who wrote hears of it after who reads
            assert witness.outcomes == ["landed"]


async def test_what_was_judged_of_an_older_spec_does_not_land_on_a_newer_one(
    engine: Engine, api: Client, namespace: str
):
    life = Life(api, namespace)
    await life.claim(exclusivity="MIG")
    async with Witness(engine) as witness:

        async def mend() -> None:
            witness.before_write = None
            await life.edit_claim({"exclusivity": "Exclusive"})

        witness.before_write = mend
        async with operating(witness, namespace):
            await life.phase("Pending")
        assert witness.outcomes[0] == "refused"
    assert await life.events() == [], "nobody is told of what did not land"
    assert (await api.get(GPU_CLAIMS, "training", namespace=namespace))["status"]["phase"] == "Pending"
