"""The Computes of a namespace where tests do what others would, an operator that looks after them, and a witness."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from typing import Any

from tessera.errors import NotFound
from tessera.kube.access import find_access
from tessera.kube.client import Client
from tessera.kube.events import Recorder
from tessera.kube.following import Leading
from tessera.kube.kinds import EVENTS, PODS, SECRETS, Kind
from tessera.operators.compute_objects import COMPUTE_DOCUMENTS, STATEFUL_SETS
from tessera.operators.compute_running import ComputeOperator
from tessera.operators.objects import second_of
from tessera.vendors.loading import load_catalogue
from tests.operators.compute_life import condition_of
from tests.operators.conftest import Engine
from tests.operators.life import PATIENCE_S, until

CATALOGUE = load_catalogue()
Document = dict[str, Any]


@asynccontextmanager
async def operating(client: Client, leading: Leading | None = None) -> AsyncIterator[ComputeOperator]:
    recorder = Recorder(client, component="tessera-operator")
    operator = ComputeOperator(client, recorder, CATALOGUE, leading=leading)
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

    async def tell_pod(
        self, *, is_owned: bool = True, volumes: list[Document] | None = None, **status: Any
    ) -> Document:
        """A pod of the set with this status, as a kubelet would tell it; or somebody else's, with the same labels."""
        found = await self.get(STATEFUL_SETS)
        template = found["spec"]["template"]["metadata"]
        labels = {**template["labels"], "controller-revision-hash": "demo-1"}
        owner = {"apiVersion": "apps/v1", "kind": "StatefulSet", "name": "demo", "uid": found["metadata"]["uid"]}
        owners = [owner | {"controller": True}] if is_owned else []
        spec = {"schedulerName": "by-hand", "containers": [{"name": "server", "image": "none"}]}
        spec |= {"volumes": volumes} if volumes else {}
        metadata = {"name": "demo-0", "labels": labels, "ownerReferences": owners}
        await self.client.create(PODS, {"metadata": metadata, "spec": spec}, namespace=self.namespace)
        return await self.client.patch(
            PODS, "demo-0", {"status": status}, namespace=self.namespace, subresource="status"
        )

    async def tell_event(self, about: Document, reason: str, message: str, kind: Kind[Any] = PODS) -> None:
        """Of a pod, as a kubelet or an autoscaler would; or of a StatefulSet, as its controller would.

        A second from now: what is said in the second of a change may be about what was before it.
        """
        about = {name: about["metadata"][name] for name in ("name", "uid")}
        about |= {"kind": kind.name, "apiVersion": kind.api_version, "namespace": self.namespace}
        now = second_of(datetime.now(UTC) + timedelta(seconds=1))
        body = {"metadata": {"generateName": "told-"}, "involvedObject": about, "reason": reason, "message": message}
        body |= {"type": "Warning", "firstTimestamp": now, "lastTimestamp": now, "count": 1}
        await self.client.create(EVENTS, body, namespace=self.namespace)

    async def spoil_token(self) -> None:
        """The Secret stays, and has no token."""
        gone = {"data": {"token": None}}
        await self.client.patch(SECRETS, "demo-token", gone, namespace=self.namespace)


def headed(body: Document) -> Document:
    return {"apiVersion": COMPUTE_DOCUMENTS.api_version, "kind": COMPUTE_DOCUMENTS.name, **body}
