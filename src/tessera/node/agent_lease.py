"""The agent's Lease: that it lives, and which deleted pods of its node have really ended.

A Lease wakes no pod that waits, as a change of the Node would. What an agent before us has told stays told.
"""

import asyncio
from collections.abc import Callable

import structlog

from tessera.errors import KubeError, NotFound
from tessera.kube.client import Client
from tessera.kube.heartbeats import Heartbeat
from tessera.kube.kinds import LEASES
from tessera.kube.objects import Document, ObjectKey
from tessera.model.annotations import keys
from tessera.model.annotations.binding import node_label
from tessera.node.ending import Endings

log: structlog.stdlib.BoundLogger = structlog.get_logger(__name__)
NAMESPACE = "kube-system"
MOST_NODE_NAME = 200
RETRY_S = 0.5


def lease_name(node: str) -> str:
    return f"tessera-agent-{node_label(node)}" if len(node) > MOST_NODE_NAME else f"tessera-agent-{node}"


class AgentLease:
    """`node_uid` is empty until the Node is known; from then on the lease goes when its node does."""

    def __init__(self, client: Client, node: str, endings: Endings, node_uid: Callable[[], str]) -> None:
        self._client = client
        self._node = node
        self._endings = endings
        self._node_uid = node_uid
        self._key = ObjectKey(NAMESPACE, lease_name(node))
        self._heartbeat = Heartbeat(client, self._key, node, marks=self._marks, beaten=self._confirm)

    def renew_soon(self) -> None:
        self._heartbeat.beat_soon()

    async def run(self) -> None:
        while not await self._recall():
            await asyncio.sleep(RETRY_S)
        await self._heartbeat.run()

    async def _recall(self) -> bool:
        try:
            lease = await self._client.get(LEASES, self._key.name, namespace=self._key.namespace)
        except NotFound:
            return True
        except KubeError as error:
            log.warning("lease not read", lease=str(self._key), error=str(error))
            return False
        self._endings.recall(_ended_in(lease["metadata"]))
        return True

    def _marks(self) -> Document:
        uid, ended = self._node_uid(), ",".join(self._endings.ended)
        owner = {"apiVersion": "v1", "kind": "Node", "name": self._node, "uid": uid}
        return {
            "labels": {keys.AGENT_LABEL: node_label(self._node)},
            "annotations": {keys.AGENT_NODE: self._node, keys.ENDED: ended},
            **({"ownerReferences": [owner]} if uid else {}),
        }

    def _confirm(self, marks: Document) -> None:
        self._endings.confirm(_ended_in(marks))


def _ended_in(metadata: Document) -> list[str]:
    annotations: dict[str, str] = metadata.get("annotations") or {}
    return [uid for uid in annotations.get(keys.ENDED, "").split(",") if uid]
