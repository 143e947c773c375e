"""The shell of Jobs: caches in, pods and a status out; a Job that is over goes when its time has come."""

import random

from tessera.embedded.controllers import jobs
from tessera.embedded.controllers.claiming import Claimant
from tessera.embedded.controllers.managing import Managing
from tessera.embedded.controllers.objects import JOBS, Job
from tessera.embedded.controllers.pod_making import RETRIES, PodMaking
from tessera.embedded.controllers.pods import PODS, suffixes
from tessera.embedded.controllers.watching import Watching
from tessera.embedded.controllers.writes import carry_out, carry_out_one, delete, put_status
from tessera.kube.client import Client
from tessera.kube.events import Recorder
from tessera.kube.objects import ObjectKey
from tessera.kube.reconciler import Again
from tessera.kube.timing import SYSTEM_CLOCK, Clock


class Jobs:
    """`run` belongs in a TaskGroup of the caller, beside that of `watching`."""

    def __init__(self, client: Client, watching: Watching, recorder: Recorder, clock: Clock = SYSTEM_CLOCK) -> None:
        self._client = client
        self._clock = clock
        self._managing = Managing(client, watching, (JOBS, PODS), _claimant, self._reconcile, backoff=RETRIES)
        self._making = PodMaking(client, JOBS, self._managing.things, recorder)
        self._suffixes = suffixes(random.Random())
        self.run = self._managing.run

    async def _reconcile(self, key: ObjectKey) -> Again | None:
        job = self._managing.owners.get(key)
        if job is None or not jobs.is_ours(job):
            return None
        if jobs.is_over(job):
            return await self._expire(job)
        if wait_s := self._making.wait_s(key):
            return Again(wait_s)
        pods = await self._managing.claimed_by(job)
        if pods is None:
            return None
        plan = jobs.plan(job, pods, self._suffixes, self._clock.wall())
        await carry_out(self._client, put_status(JOBS, job.metadata, job.status, plan.status))
        refusal = await self._making.make(job.metadata, plan.make)
        await self._making.remove(key, plan.remove)
        if refusal is not None:
            raise refusal
        return Again(plan.again_s) if plan.again_s else None

    async def _expire(self, job: Job) -> Again | None:
        wait_s = jobs.expires_in_s(job, self._clock.wall())
        if wait_s is None or job.metadata.is_going:
            return None
        if wait_s > 0:
            return Again(wait_s)
        await carry_out_one(self._client, delete(JOBS, job.metadata, "Foreground"))
        return None


def _claimant(job: Job) -> Claimant:
    return Claimant(JOBS, job.metadata, job.spec.selector)
