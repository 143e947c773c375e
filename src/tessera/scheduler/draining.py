"""Draining: a pod is gone from the API, and its processes perhaps not.

The kubelet lets a pod go only when its containers have ended. Whoever deletes by force does not wait, and a card that
is given away then is used by two. So where an agent of ours is on the node, the cards of such a pod stay taken until
the agent says that its containers are gone, on the Lease by which it also says that it lives. An agent that is lost
says nothing, and nothing is freed; where there is none, or no node any more, there is nobody to wait for.
"""

from collections.abc import Callable

import msgspec
import structlog

from tessera.engine.ledger import State
from tessera.kube.caching import Change
from tessera.kube.kinds import LEASES, Selection
from tessera.kube.objects import ObjectMeta
from tessera.kube.pods import Pod
from tessera.model.annotations.keys import AGENT_LABEL, AGENT_NODE, ENDED
from tessera.scheduler.nodes import CachedNode
from tessera.scheduler.world import World

log: structlog.stdlib.BoundLogger = structlog.get_logger(__name__)


class AgentMetadata(ObjectMeta, frozen=True, kw_only=True, gc=False):
    annotations: dict[str, str] | None = None


class AgentLease(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    metadata: AgentMetadata

    @property
    def node(self) -> str:
        return (self.metadata.annotations or {}).get(AGENT_NODE, "")

    @property
    def ended(self) -> frozenset[str]:
        """The UIDs of pods whose containers are gone."""
        said = (self.metadata.annotations or {}).get(ENDED, "")
        return frozenset(filter(None, (uid.strip() for uid in said.split(","))))


AGENT_LEASES = LEASES.decoded_as(AgentLease)
AGENTS = Selection(namespace="kube-system", labels=AGENT_LABEL)


class Draining:
    """`node_exists` says whether a node is in the API. The handlers are those of informers."""

    def __init__(self, world: World, node_exists: Callable[[str], bool]) -> None:
        self._world = world
        self._node_exists = node_exists
        self._ended_on: dict[str, frozenset[str]] = {}

    def lingers(self, pod: Pod) -> bool:
        """Whether containers of a pod that is gone may still run, and somebody is there who will tell of their end."""
        node = pod.spec.node_name or ""
        if node not in self._ended_on or not self._node_exists(node):
            return False
        return pod.status.has_running_containers and pod.metadata.uid not in self._ended_on[node]

    def may_linger(self, node: str, uid: str) -> bool:
        """The same of a pod of which no more is known than that it was there."""
        return node in self._ended_on and self._node_exists(node) and uid not in self._ended_on[node]

    def agent_changed(self, change: Change[AgentLease]) -> None:
        before, after = change.before and change.before.node, change.after and change.after.node
        if before and before != after:
            self._ended_on.pop(before, None)
            self._release_all(before, "no agent is on the node any more")
        if after and change.after is not None:
            ended = self._ended_on[after] = change.after.ended
            for uid in self._draining_on(after) & ended:
                self._release(uid, "the agent says that its containers are gone")

    def node_changed(self, change: Change[CachedNode]) -> None:
        if change.after is None:
            self._release_all(change.key.name, "the node is gone")

    def _draining_on(self, node: str) -> set[str]:
        holdings = self._world.ledger.holdings_on(node)
        return {holding.ref.uid for holding in holdings if holding.state is State.DRAINING}

    def _release_all(self, node: str, why: str) -> None:
        for uid in self._draining_on(node):
            self._release(uid, why)

    def _release(self, uid: str, why: str) -> None:
        holding = self._world.ledger.holding(uid)
        if holding is not None:
            log.info("pod drained", pod=str(holding.ref), node=holding.allocation.node, why=why)
        self._world.release(uid)
