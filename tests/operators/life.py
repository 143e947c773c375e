"""What users, the scheduler and kubelets do to claims and pods, done by hand; and an operator that looks on."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

from tessera.kube.client import Client, Deletion
from tessera.kube.events import Recorder
from tessera.kube.kinds import EVENTS, GPU_CLAIMS, GPU_GANGS, LEASES, PODS, Selection
from tessera.kube.objects import Document
from tessera.model.annotations.keys import CARD_LEASE, CARD_NODE, CARD_PODS, CLAIM, CLAIMED, PIN
from tessera.operators.running import Operator

PATIENCE_S = 20
LOOK_AGAIN_S = 0.02


@asynccontextmanager
async def operating(client: Client, lease_namespace: str) -> AsyncIterator[Operator]:
    recorder = Recorder(client, component="tessera-operator")
    operator = Operator(client, recorder, lease_namespace=lease_namespace)
    tasks = [asyncio.create_task(work) for work in (recorder.run(), *operator.works())]
    yield operator
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


async def until(is_so: Callable[[], object]) -> None:
    async with asyncio.timeout(PATIENCE_S):
        while not is_so():
            await asyncio.sleep(LOOK_AGAIN_S)


class Life:
    """Of the claims and pods of one namespace."""

    def __init__(self, client: Client, namespace: str) -> None:
        self._client = client
        self._namespace = namespace

    async def claim(self, name: str = "training", *, gang: str = "", **devices: Any) -> None:
        spec: Document = {"devices": {"count": 1, **devices}, **({"gangRef": gang} if gang else {})}
        await self._client.create(GPU_CLAIMS, _named("GpuClaim", name, spec), namespace=self._namespace)

    async def gang(self, name: str, min_member: int) -> None:
        body = _named("GpuGang", name, {"minMember": min_member})
        await self._client.create(GPU_GANGS, body, namespace=self._namespace)

    async def edit_claim(self, devices: Document, name: str = "training") -> None:
        await self._client.patch(GPU_CLAIMS, name, {"spec": {"devices": devices}}, namespace=self._namespace)

    async def pod(self, name: str, claim: str = "training", **annotations: str) -> str:
        """Its UID. No scheduler of the engine looks after it."""
        metadata = {"name": name, "annotations": {CLAIM: claim, **annotations}}
        spec = {"schedulerName": "by-hand", "containers": [{"name": "main", "image": "none"}]}
        made = await self._client.create(PODS, {"metadata": metadata, "spec": spec}, namespace=self._namespace)
        return made["metadata"]["uid"]

    async def refuse(self, pod: str, why: str) -> None:
        await self._status(pod, {"conditions": [{"type": "PodScheduled", "status": "False", "message": why}]})

    async def lease(self, card: int, uid: str, node: str = "node-a") -> str:
        metadata = {
            "name": f"gpu-{node}-{card}",
            "labels": {CARD_LEASE: "true"},
            "annotations": {CARD_NODE: node, CARD_PODS: uid},
        }
        body = {"metadata": metadata, "spec": {"holderIdentity": uid}}
        await self._client.create(LEASES, body, namespace=self._namespace)
        return metadata["name"]

    async def unlease(self, name: str) -> None:
        await self._client.delete(LEASES, name, namespace=self._namespace)

    async def bind(self, pod: str, allocated: str) -> None:
        annotations = {PIN: allocated, CLAIMED: "GPU-0,NVIDIA,81920,100:"}
        target = {"apiVersion": "v1", "kind": "Node", "name": allocated.partition(":")[0]}
        body = {"metadata": {"name": pod, "annotations": annotations}, "target": target}
        await self._client.create_under(PODS, pod, "binding", body, namespace=self._namespace)

    async def end(self, pod: str, phase: str) -> None:
        await self._status(pod, {"phase": phase})

    async def delete(self, pod: str) -> None:
        await self._client.delete(PODS, pod, namespace=self._namespace, how=Deletion(grace_s=0))

    async def delete_claim(self, name: str = "training") -> None:
        await self._client.delete(GPU_CLAIMS, name, namespace=self._namespace)

    async def status(self, name: str = "training") -> Document:
        return (await self._client.get(GPU_CLAIMS, name, namespace=self._namespace)).get("status") or {}

    async def gang_status(self, name: str) -> Document:
        return (await self._client.get(GPU_GANGS, name, namespace=self._namespace)).get("status") or {}

    async def phase(self, phase: str, name: str = "training") -> Document:
        return await self.until(lambda status: status.get("phase") == phase, name)

    async def until(self, is_so: Callable[[Document], bool], name: str = "training") -> Document:
        """The first status of the claim that is so."""
        async with asyncio.timeout(PATIENCE_S):
            while not is_so(status := await self.status(name)):
                await asyncio.sleep(LOOK_AGAIN_S)
        return status

    async def events(self, name: str = "training") -> list[tuple[str, str]]:
        events = await self._client.list(EVENTS, Selection(namespace=self._namespace))
        return [(one["reason"], one["message"]) for one in events.items if one["involvedObject"]["name"] == name]

    async def _status(self, pod: str, status: Document) -> None:
        await self._client.patch(PODS, pod, {"status": status}, namespace=self._namespace, subresource="status")


def _named(kind: str, name: str, spec: Document) -> Document:
    return {"apiVersion": "gpu.scheduling/v1", "kind": kind, "metadata": {"name": name}, "spec": spec}
