"""The reconciler of MPIJobs: makes what a job needs, cleans up after it, and says what became of it.

It does what MPI Operator 0.8 does, for clusters where that does not run: our own engine. Each look starts from what is
there, so a controller that was killed goes on where it was.
"""

from collections.abc import Coroutine, Sequence
from typing import Any

import structlog

from tessera.errors import BadRequest, Conflict, Forbidden, Invalid, NotFound
from tessera.kube.client import Client
from tessera.kube.event_series import ObjectReference
from tessera.kube.events import Recorder
from tessera.kube.objects import Document, ObjectKey
from tessera.kube.reconciler import Again, Reconciler
from tessera.kube.timing import SYSTEM_CLOCK, Backoff, Clock
from tessera.model.mpi_hosts import RANKS_RAN_ON
from tessera.operators.mpi_board import Boards, write_ranks
from tessera.operators.mpi_making import MpiMaker, ResourceExists
from tessera.operators.mpi_objects import (
    MPI_JOB_DOCUMENTS,
    MPI_JOBS,
    WAIT_FOR_WORKERS,
    MpiJob,
    MpiJobStatus,
)
from tessera.operators.mpi_pods import MpiPod
from tessera.operators.mpi_status import Observed, judge, judge_cleaned, launcher_outcome, tell, write_status
from tessera.operators.mpi_templates import MpiSettings
from tessera.operators.mpi_validating import explain_refusal, shorten
from tessera.operators.mpi_watching import WatchedMpiJobs
from tessera.operators.objects import name_some, second_of

log: structlog.stdlib.BoundLogger = structlog.get_logger(__name__)
LOOK_AGAIN_S = 1.0
NOT_YET_S = 0.1
TAKEN_AGAIN_S = 5.0
CLEANED = {"All": ("Pending", "Running", "Succeeded", "Failed", "Unknown"), "Running": ("Pending", "Running")}
RETRIES = Backoff(first_s=0.05, most_s=15.0)
"""How soon is tried again what was refused: whoever raises a quota waits for it."""
TEMPLATE_RESTARTS = "Restart policy in pod template overridden by restart policy in replica spec"


class MpiOperator:
    """`works` belong in a TaskGroup of the caller. Nobody else may look after MPIJobs there."""

    def __init__(
        self, client: Client, recorder: Recorder, boards: Boards, settings: MpiSettings, clock: Clock = SYSTEM_CLOCK
    ) -> None:
        self._client = client
        self._recorder = recorder
        self._boards = boards
        self._clock = clock
        self._told: dict[ObjectKey, tuple[str, str]] = {}
        self.jobs: Reconciler[ObjectKey] = Reconciler("mpijobs", self._reconcile, backoff=RETRIES)
        self.watched = WatchedMpiJobs(client, self.jobs.mark)
        self._maker = MpiMaker(client, self.watched, boards, settings)

    @property
    def is_synced(self) -> bool:
        return self.watched.is_synced

    def works(self) -> list[Coroutine[Any, Any, None]]:
        return [self.watched.run(), self.jobs.run()]

    async def _reconcile(self, key: ObjectKey) -> Again | None:
        if not self.is_synced:
            return Again(NOT_YET_S)
        job = self.watched.jobs.get(key)
        if job is None:
            self._told.pop(key, None)
            self._boards.keep([one.uid for one in self.watched.jobs])
            return None
        if job.metadata.deletion_timestamp or not job.is_ours:
            return None
        if refusal := explain_refusal(job):
            self._complain(job, "ValidationError", refusal)
            return None
        if job.status.is_finished and job.status.completion_time:
            await self._clean_up(job)
            return None
        try:
            return await self._look_after(job)
        except ResourceExists as taken:
            self._complain(job, "ErrResourceExists", str(taken))
            return Again(TAKEN_AGAIN_S)
        except (BadRequest, Forbidden, Invalid) as refused:
            self._complain(job, "MPIJobFailed", f"pod created failed: {refused}")
            raise

    async def _look_after(self, job: MpiJob) -> Again | None:
        launcher = self._maker.launcher(job)
        if launcher is None or launcher_outcome(launcher) is None:
            launcher = await self._make(job, launcher)
        workers = self.watched.pods_of(job.uid)
        self._boards.tell(job.uid, workers)
        job = await self._tell_ranks(job)
        observed = Observed(
            launcher=launcher,
            launcher_pods=self.watched.pods_of(launcher["metadata"]["uid"]) if launcher else (),
            workers=[pod for pod in workers if pod.name in job.worker_names],
        )
        await self._tell_status(job, judge(job, observed, self._now()))
        return Again(LOOK_AGAIN_S) if job.status.is_true("Running") else None

    async def _make(self, job: MpiJob, launcher: Document | None) -> Document | None:
        await self._maker.make_surroundings(job)
        if job.is_suspended:
            await self._clean(job, self.watched.pods_of(job.uid))
        else:
            self._tell_of_lost(job, await self._maker.make_workers(job))
        if launcher is None and self._may_launch(job):
            self._warn_of_template(job)
            launcher = await self._maker.make_launcher(job)
        return await self._maker.align(launcher, suspend=job.is_suspended) if launcher else None

    def _may_launch(self, job: MpiJob) -> bool:
        if job.spec.launcher_creation_policy != WAIT_FOR_WORKERS:
            return True
        return sum(pod.is_ready for pod in self.watched.pods_of(job.uid)) >= (0 if job.is_suspended else job.workers)

    async def _clean_up(self, job: MpiJob) -> None:
        workers = self.watched.pods_of(job.uid)
        job = await self._tell_ranks(job)
        if job.clean_pod_policy not in CLEANED:
            return
        await self._clean(job, workers)
        await self._maker.remove_gang(job)
        await self._tell_status(job, judge_cleaned(job, self.watched.pods_of(job.uid)))

    async def _clean(self, job: MpiJob, workers: Sequence[MpiPod]) -> None:
        """A job that is suspended without a policy has its workers removed as well."""
        phases = CLEANED.get(job.clean_pod_policy, CLEANED["All"])
        await self._maker.remove([pod for pod in workers if pod.status.phase in phases])

    async def _tell_ranks(self, job: MpiJob) -> MpiJob:
        """The job that says which ranks its workers had. What they told stays when they are gone."""
        seen = self._boards.ranks(job.uid, job.worker_names)
        if not self.has_launched(job) or (job.metadata.annotations or {}).get(RANKS_RAN_ON) == write_ranks(seen):
            return job
        body = {"metadata": {"annotations": {RANKS_RAN_ON: write_ranks(seen)}}}
        return await self._client.patch(MPI_JOBS, job.name, body, namespace=job.namespace)

    def has_launched(self, job: MpiJob) -> bool:
        """Whether ranks may have come by now."""
        return job.status.is_true("Running") or job.status.is_finished

    async def _tell_status(self, job: MpiJob, status: MpiJobStatus) -> None:
        if status == job.status:
            return
        body = {"metadata": {"resourceVersion": job.metadata.resource_version}, "status": write_status(status)}
        try:
            await self._client.patch(MPI_JOBS, job.name, body, namespace=job.namespace, subresource="status")
        except (Conflict, NotFound):  # it is gone, and that will be told
            return
        for level, reason, message in tell(job.status, status):
            log.info("mpijob is", job=str(job.key), reason=reason)
            self._record(job, level, reason, message)

    def _tell_of_lost(self, job: MpiJob, made: Sequence[str]) -> None:
        """mpirun may say nothing about a worker that went away, or nothing that people understand."""
        if made and job.status.is_true("Running"):
            words = f"worker {name_some(made)} ended while the job ran, and is made again"
            self._record(job, "Warning", "MPIJobWorkerLost", words)

    def _warn_of_template(self, job: MpiJob) -> None:
        launcher = job.spec.mpi_replica_specs.launcher
        if launcher is not None and launcher.pod_spec.get("restartPolicy"):
            self._record(job, "Warning", "SetPodTemplateRestartPolicy", TEMPLATE_RESTARTS)

    def _complain(self, job: MpiJob, reason: str, message: str) -> None:
        """Once for each state of the job."""
        if self._told.get(job.key) != (f"{job.uid}/{job.metadata.generation}", message):
            self._told[job.key] = f"{job.uid}/{job.metadata.generation}", message
            log.warning("mpijob cannot go on", job=str(job.key), reason=reason, why=message)
            self._record(job, "Warning", reason, shorten(message))

    def _record(self, job: MpiJob, level: str, reason: str, message: str) -> None:
        about = ObjectReference(
            kind=MPI_JOB_DOCUMENTS.name,
            api_version=MPI_JOB_DOCUMENTS.api_version,
            name=job.name,
            namespace=job.namespace,
            uid=job.uid,
        )
        {"Normal": self._recorder.normal, "Warning": self._recorder.warning}[level](about, reason, message)

    def _now(self) -> str:
        return second_of(self._clock.wall())
