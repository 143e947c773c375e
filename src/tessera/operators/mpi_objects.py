"""MPIJobs of `kubeflow.org/v2beta1` as our controller reads them, with the defaults of the MPI operator.

Names, labels and defaults are those of MPI Operator 0.8, so that whatever looks for its objects finds them here too.
Templates are kept as plain documents: they are handed on as they are.
"""

from typing import Any

import msgspec

from tessera.kube.kinds import CONFIG_MAPS, SECRETS, SERVICES, Kind, kind_of
from tessera.kube.objects import Document, ObjectMeta
from tessera.operators.owning import Named

OPERATOR_LABEL, OPERATOR = "training.kubeflow.org/operator-name", "mpi-operator"
JOB_LABEL = "training.kubeflow.org/job-name"
ROLE_LABEL = "training.kubeflow.org/job-role"
INDEX_LABEL = "training.kubeflow.org/replica-index"
LAUNCHER, WORKER = "launcher", "worker"
MANAGED_BY = "kubeflow.org/mpi-operator"
OPEN_MPI, INTEL, MPICH = "OpenMPI", "Intel", "MPICH"
AT_STARTUP, WAIT_FOR_WORKERS = "AtStartup", "WaitForWorkersReady"


class _Part(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    pass


class SchedulingPolicy(_Part, frozen=True, kw_only=True):
    min_available: int | None = None


class RunPolicy(_Part, frozen=True, kw_only=True):
    clean_pod_policy: str | None = None
    ttl_seconds_after_finished: int | None = None
    active_deadline_seconds: int | None = None
    backoff_limit: int | None = None
    suspend: bool | None = None
    managed_by: str | None = None
    scheduling_policy: SchedulingPolicy | None = None


class ReplicaSpec(_Part, frozen=True, kw_only=True):
    replicas: int | None = None
    restart_policy: str | None = None
    template: Document = {}

    @property
    def pod_spec(self) -> Document:
        return part(self.template, "spec")

    @property
    def containers(self) -> list[Document]:
        return self.pod_spec.get("containers") or []


class Replicas(msgspec.Struct, frozen=True, kw_only=True, rename="pascal"):
    launcher: ReplicaSpec | None = None
    worker: ReplicaSpec | None = None


class MpiJobSpec(_Part, frozen=True, kw_only=True):
    slots_per_worker: int | None = None
    run_launcher_as_worker: bool | None = None
    launcher_creation_policy: str | None = None
    mpi_implementation: str | None = None
    mpi_replica_specs: Replicas = Replicas()
    run_policy: RunPolicy = RunPolicy()
    ssh_auth_mount_path: str | None = None


class Condition(_Part, frozen=True, kw_only=True):
    type: str
    status: str
    reason: str = ""
    message: str = ""
    last_update_time: str | None = None
    last_transition_time: str | None = None


class ReplicaStatus(_Part, frozen=True, kw_only=True, omit_defaults=True):
    active: int = 0
    succeeded: int = 0
    failed: int = 0


class MpiJobStatus(_Part, frozen=True, kw_only=True):
    conditions: tuple[Condition, ...] | None = None
    replica_statuses: dict[str, ReplicaStatus] | None = None
    start_time: str | None = None
    completion_time: str | None = None
    last_reconcile_time: str | None = None

    def condition(self, kind: str) -> Condition | None:
        return next((one for one in self.conditions or () if one.type == kind), None)

    def is_true(self, kind: str) -> bool:
        found = self.condition(kind)
        return found is not None and found.status == "True"

    @property
    def is_finished(self) -> bool:
        return self.is_true("Succeeded") or self.is_true("Failed")


class MpiJobMetadata(ObjectMeta, frozen=True, kw_only=True):
    generation: int | None = None
    annotations: dict[str, str] | None = None
    deletion_timestamp: str | None = None


class MpiJob(Named, frozen=True, kw_only=True):
    metadata: MpiJobMetadata
    spec: MpiJobSpec = MpiJobSpec()
    status: MpiJobStatus = MpiJobStatus()

    @property
    def is_ours(self) -> bool:
        return self.spec.run_policy.managed_by in (None, "", MANAGED_BY)

    @property
    def is_suspended(self) -> bool:
        return bool(self.spec.run_policy.suspend)

    @property
    def runs_launcher_as_worker(self) -> bool:
        return bool(self.spec.run_launcher_as_worker)

    @property
    def implementation(self) -> str:
        return self.spec.mpi_implementation or OPEN_MPI

    @property
    def slots(self) -> int:
        given = self.spec.slots_per_worker
        return 1 if given is None else given

    @property
    def workers(self) -> int:
        """How many it wants; a job without workers runs on its launcher alone."""
        worker = self.spec.mpi_replica_specs.worker
        return 0 if worker is None else worker.replicas or 0

    @property
    def clean_pod_policy(self) -> str:
        """Its documentation says Running, and the operator takes None; people are right to always set it."""
        return self.spec.run_policy.clean_pod_policy or "None"

    @property
    def launcher_name(self) -> str:
        return f"{self.name}-launcher"

    @property
    def config_name(self) -> str:
        return f"{self.name}-config"

    @property
    def secret_name(self) -> str:
        return f"{self.name}-ssh"

    def worker_name(self, index: int) -> str:
        return f"{self.name}-worker-{index}"

    @property
    def worker_names(self) -> list[str]:
        return [self.worker_name(index) for index in range(self.workers)]


MPI_JOB_DOCUMENTS = kind_of("kubeflow.org", "v2beta1", "mpijobs", "MPIJob")
MPI_JOBS = MPI_JOB_DOCUMENTS.decoded_as(MpiJob)
JOBS = kind_of("batch", "v1", "jobs", "Job")
CHILDREN: tuple[Kind[Document], ...] = (CONFIG_MAPS, SERVICES, SECRETS, JOBS)


def part(document: Document | None, *names: str) -> Document:
    """What is nested there; empty, if it is not."""
    found: Document = document or {}
    for name in names:
        found = found.get(name) or {}
    return found


def labels_of(job: MpiJob, role: str | None = None) -> dict[str, str]:
    labels = {OPERATOR_LABEL: OPERATOR, JOB_LABEL: job.name}
    return {**labels, ROLE_LABEL: role} if role else labels


def owner_reference(job: MpiJob) -> dict[str, Any]:
    return {
        "apiVersion": MPI_JOB_DOCUMENTS.api_version,
        "kind": MPI_JOB_DOCUMENTS.name,
        "name": job.name,
        "uid": job.uid,
        "controller": True,
        "blockOwnerDeletion": True,
    }
