"""The shell of StatefulSets: caches in, pods and a status out.

Names are numbers here, so that no pod can be made twice, and none is removed but the one that was seen.
"""

from collections.abc import Sequence

from tessera.embedded.controllers import stateful_sets
from tessera.embedded.controllers.claiming import Claimant
from tessera.embedded.controllers.managing import Managing
from tessera.embedded.controllers.objects import STATEFUL_SETS, StatefulSet, reference_to
from tessera.embedded.controllers.pod_making import RETRIES
from tessera.embedded.controllers.pods import PODS
from tessera.embedded.controllers.replica_sets import next_available_s
from tessera.embedded.controllers.watching import Watching
from tessera.embedded.controllers.writes import Patch, Write, carry_out, carry_out_one, put_status
from tessera.errors import ApiError
from tessera.kube.client import Client
from tessera.kube.events import Recorder
from tessera.kube.objects import ObjectKey
from tessera.kube.reconciler import Again
from tessera.kube.timing import SYSTEM_CLOCK, Clock


class StatefulSets:
    """`run` belongs in a TaskGroup of the caller, beside that of `watching`."""

    def __init__(self, client: Client, watching: Watching, recorder: Recorder, clock: Clock = SYSTEM_CLOCK) -> None:
        self._client = client
        self._clock = clock
        self._recorder = recorder
        kinds = (STATEFUL_SETS, PODS)
        self._managing = Managing(client, watching, kinds, _claimant, self._reconcile, backoff=RETRIES)
        self.run = self._managing.run

    async def _reconcile(self, key: ObjectKey) -> Again | None:
        one = self._managing.owners.get(key)
        if one is None:
            return None
        pods = await self._managing.claimed_by(one)
        if pods is None:
            return None
        now = self._clock.wall()
        status = stateful_sets.status_of(one, pods, now)
        await carry_out(self._client, put_status(STATEFUL_SETS, one.metadata, one.status, status))
        await self._carry_out(one, stateful_sets.plan(one, pods, now))
        wait_s = next_available_s(pods, one.spec.min_ready_seconds, now)
        return Again(wait_s) if wait_s else None

    async def _carry_out(self, one: StatefulSet, writes: Sequence[Write]) -> None:
        for write in writes:
            try:
                was_done = await carry_out_one(self._client, write)
            except ApiError as refusal:
                self._tell(one, write, refusal)
                raise
            if was_done:
                self._tell(one, write, None)

    def _tell(self, one: StatefulSet, write: Write, refusal: ApiError | None) -> None:
        """Of pods that came and went, as kube-controller-manager words it: others read why a pod is not there."""
        if isinstance(write, Patch):
            return
        about, verb = reference_to(STATEFUL_SETS, one.metadata), type(write).__name__
        told = f"{verb} Pod {write.key.name} in StatefulSet {one.metadata.name}"
        if refusal is None:
            self._recorder.normal(about, f"Successful{verb}", f"{told} successful")
        else:
            self._recorder.warning(about, f"Failed{verb}", f"{told} failed error: {refusal.message}")


def _claimant(stateful_set: StatefulSet) -> Claimant:
    return Claimant(STATEFUL_SETS, stateful_set.metadata, stateful_set.spec.selector)
