"""The shell of DaemonSets: caches of pods and nodes in, pods and a status out."""

import random

from tessera.embedded.controllers import daemon_sets
from tessera.embedded.controllers.claiming import Claimant
from tessera.embedded.controllers.managing import Managing
from tessera.embedded.controllers.objects import DAEMON_SETS, NODES, DaemonSet, Node
from tessera.embedded.controllers.pod_making import RETRIES, PodMaking
from tessera.embedded.controllers.pods import PODS, suffixes
from tessera.embedded.controllers.replica_sets import next_available_s
from tessera.embedded.controllers.watching import Watching
from tessera.embedded.controllers.writes import carry_out, put_status
from tessera.kube.caching import Change
from tessera.kube.client import Client
from tessera.kube.events import Recorder
from tessera.kube.objects import ObjectKey
from tessera.kube.reconciler import Again
from tessera.kube.timing import SYSTEM_CLOCK, Clock


class DaemonSets:
    """`run` belongs in a TaskGroup of the caller, beside that of `watching`."""

    def __init__(self, client: Client, watching: Watching, recorder: Recorder, clock: Clock = SYSTEM_CLOCK) -> None:
        self._client = client
        self._clock = clock
        kinds = (DAEMON_SETS, PODS)
        self._managing = Managing(client, watching, kinds, _claimant, self._reconcile, backoff=RETRIES)
        self._making = PodMaking(client, DAEMON_SETS, self._managing.things, recorder)
        self._suffixes = suffixes(random.Random())
        self._nodes = watching.follow(NODES)
        self._nodes.subscribe(self._notice_node)

    async def run(self) -> None:
        await self._nodes.synced()
        await self._managing.run()

    def _notice_node(self, change: Change[Node]) -> None:
        if _place(change.before) != _place(change.after):
            for daemon_set in self._managing.owners:
                self._managing.mark(daemon_set.metadata.key)

    async def _reconcile(self, key: ObjectKey) -> Again | None:
        daemon_set = self._managing.owners.get(key)
        if daemon_set is None:
            return None
        if wait_s := self._making.wait_s(key):
            return Again(wait_s)
        pods = await self._managing.claimed_by(daemon_set)
        if pods is None:
            return None
        now = self._clock.wall()
        posts = daemon_sets.survey(daemon_set, pods, list(self._nodes))
        status = daemon_sets.status_of(daemon_set, posts, now)
        await carry_out(self._client, put_status(DAEMON_SETS, daemon_set.metadata, daemon_set.status, status))
        wanted = daemon_sets.plan(daemon_set, posts, self._suffixes, now)
        refusal = await self._making.make(daemon_set.metadata, wanted.make)
        await self._making.remove(key, wanted.remove)
        if refusal is not None:
            raise refusal
        wait_s = next_available_s(pods, daemon_set.spec.min_ready_seconds, now)
        return Again(wait_s) if wait_s else None


def _place(node: Node | None) -> object:
    """What of a node decides whether pods may be there."""
    return node and (node.metadata.labels, node.spec)


def _claimant(daemon_set: DaemonSet) -> Claimant:
    return Claimant(DAEMON_SETS, daemon_set.metadata, daemon_set.spec.selector)
