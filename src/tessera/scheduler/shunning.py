"""Nodes that others than us do not let a member of a gang have.

We hear of it only because kube-scheduler does not name the node that we have promised. It may be otherwise later, so
what is known is forgotten after a while; until then it is not promised again and again for nothing.
"""

import msgspec

from tessera.model.pod_hosts import NODE_NAME_FIELD, restrict_nodes
from tessera.model.requests import LabelRule, PodRequest
from tessera.scheduler.world import FOREVER

SHUN_S = 30.0


class Shunned:
    """By the UIDs of pods."""

    def __init__(self) -> None:
        self._until_s: dict[str, dict[str, float]] = {}

    def shun(self, uid: str, node: str, now_s: float) -> None:
        self._until_s.setdefault(uid, {})[node] = now_s + SHUN_S

    def forget(self, uid: str) -> None:
        self._until_s.pop(uid, None)

    def until_s(self, now_s: float) -> float:
        """When the first of them is forgotten; never, if there are none."""
        known = (until_s for nodes in self._until_s.values() for until_s in nodes.values() if until_s > now_s)
        return min(known, default=FOREVER)

    def narrow(self, uid: str, request: PodRequest, now_s: float) -> PodRequest:
        """The same request, on other nodes than these alone."""
        nodes = tuple(sorted(node for node, until_s in self._until_s.get(uid, {}).items() if until_s > now_s))
        rules = [LabelRule(NODE_NAME_FIELD, "NotIn", nodes)] if nodes else []
        return msgspec.structs.replace(request, host=restrict_nodes(request.host, rules))
