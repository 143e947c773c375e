"""The pods of one node, as the API has them."""

import asyncio

from tessera.apps.working import Work
from tessera.kube.client import Client
from tessera.kube.informer import Informer
from tessera.kube.kinds import Selection
from tessera.kube.objects import ObjectKey
from tessera.kube.pods import OVER
from tessera.node.holders import Holder
from tessera.node.pods import NODE_PODS, Pod

BY_UID = "uid"


class NodePods:
    def __init__(self, client: Client, node: str) -> None:
        on_node = Selection(fields=f"spec.nodeName={node}")
        self.informer = Informer(client, NODE_PODS, on_node, indexes={BY_UID: _uid_of})

    @property
    def is_synced(self) -> bool:
        return self.informer.is_synced

    def find(self, uid: str) -> Pod | None:
        return next(iter(self.informer.find(BY_UID, uid)), None)

    def find_holder(self, holder: Holder) -> Pod | None:
        if holder.pod_uid:
            return self.find(holder.pod_uid)
        return self.informer.get(ObjectKey(holder.namespace, holder.pod))

    def is_known(self, uid: str) -> bool:
        return self.find(uid) is not None

    def is_unfinished(self, uid: str) -> bool:
        pod = self.find(uid)
        return pod is not None and pod.status.phase not in OVER

    async def once_synced(self, work: Work) -> None:
        """Before the pods are known, every one of them looks as if it had ended."""
        try:
            await self.informer.synced()
        except asyncio.CancelledError:
            work.close()
            raise
        await work


def _uid_of(pod: Pod) -> tuple[str, ...]:
    return (pod.metadata.uid or "",)
