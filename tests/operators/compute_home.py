"""The Computes of a namespace where tests do what others would, an operator that looks after them, and a witness."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

from tessera.errors import NotFound
from tessera.kube.access import find_access
from tessera.kube.client import Client
from tessera.kube.events import Recorder
from tessera.kube.kinds import PODS, Kind
from tessera.operators.compute_objects import COMPUTE_DOCUMENTS, STATEFUL_SETS
from tessera.operators.compute_running import ComputeOperator
from tessera.vendors.loading import load_catalogue
from tests.operators.compute_life import condition_of
from tests.operators.conftest import Engine
from tests.operators.life import PATIENCE_S, until

CATALOGUE = load_catalogue()
Document = dict[str, Any]


@asynccontextmanager
async def operating(client: Client) -> AsyncIterator[ComputeOperator]:
    recorder = Recorder(client, component="tessera-operator")
    operator = ComputeOperator(client, recorder, CATALOGUE)
    tasks = [asyncio.create_task(work) for work in (recorder.run(), *operator.works())]
    try:
        yield operator
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def look_again(operator: ComputeOperator, computes: int = 1) -> None:
    """At each of them, with all that is known."""
    await until(lambda: operator.is_synced)
    before = operator.computes.counts.again
    operator.watched.mark_all()
    await until(lambda: operator.computes.counts.again >= before + computes)


class Writes(Client):
    """Notes what is written, as `verb kind`."""

    def __init__(self, engine: Engine) -> None:
        super().__init__(find_access(engine.kubeconfig))
        self.noted: list[str] = []

    async def apply(self, kind: Kind[Any], name: str, body: Any, **how: Any) -> Any:
        self.noted.append(f"apply {kind.name}")
        return await super().apply(kind, name, body, **how)

    async def create(self, kind: Kind[Any], body: Any, **how: Any) -> Any:
        self.noted.append(f"create {kind.name}")
        return await super().create(kind, body, **how)

    async def patch(self, kind: Kind[Any], name: str, body: Any, **how: Any) -> Any:
        self.noted.append(f"patch {kind.name}")
        return await super().patch(kind, name, body, **how)


class Home:
    """The Computes of one namespace, and what is made for them."""

    def __init__(self, client: Client, namespace: str) -> None:
        self.client = client
        self.namespace = namespace

    async def make(self, name: str = "demo", spec: Document | None = None, **metadata: Any) -> None:
        body = {"metadata": {"name": name, **metadata}, "spec": spec or {"suspend": False}}
        await self.client.create(COMPUTE_DOCUMENTS, headed(body), namespace=self.namespace)

    async def change(self, spec: Document, name: str = "demo") -> None:
        await self.client.patch(COMPUTE_DOCUMENTS, name, {"spec": spec}, namespace=self.namespace)

    async def get(self, kind: Kind[Any], name: str = "demo") -> Document:
        return await self.client.get(kind, name, namespace=self.namespace)

    async def until(self, kind: Kind[Any], is_so: Callable[[Document], object], name: str = "demo") -> Document:
        """The object, once it is there and is so."""
        async with asyncio.timeout(PATIENCE_S):
            while True:
                try:
                    found = await self.get(kind, name)
                    if is_so(found):
                        return found
                except NotFound:
                    pass
                await asyncio.sleep(0.02)

    async def until_told(self, reason: str, name: str = "demo") -> Document:
        return await self.until(COMPUTE_DOCUMENTS, lambda one: condition_of(one, "Ready").get("reason") == reason, name)

    async def tell_set(self, **status: Any) -> None:
        """As the StatefulSet's controller would."""
        found = await self.get(STATEFUL_SETS)
        told = {
            "observedGeneration": found["metadata"]["generation"],
            "replicas": 1,
            "updateRevision": "demo-1",
            **status,
        }
        await self.client.patch(STATEFUL_SETS, "demo", {"status": told}, namespace=self.namespace, subresource="status")

    async def tell_pod(self, **status: Any) -> None:
        """A pod of the set with this status, as a kubelet would tell it."""
        found = await self.get(STATEFUL_SETS)
        template = found["spec"]["template"]["metadata"]
        labels = {**template["labels"], "controller-revision-hash": "demo-1"}
        spec = {"schedulerName": "by-hand", "containers": [{"name": "server", "image": "none"}]}
        body = {"metadata": {"name": "demo-0", "labels": labels}, "spec": spec}
        await self.client.create(PODS, body, namespace=self.namespace)
        await self.client.patch(PODS, "demo-0", {"status": status}, namespace=self.namespace, subresource="status")


def headed(body: Document) -> Document:
    return {"apiVersion": COMPUTE_DOCUMENTS.api_version, "kind": COMPUTE_DOCUMENTS.name, **body}
