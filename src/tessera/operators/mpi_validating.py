"""What the MPI operator refuses, in its words. Pure.

A job that is refused gets an event and no condition, as there. What the API server's schema refuses does not come here.
"""

import re
from collections.abc import Iterator

from tessera.operators.mpi_objects import AT_STARTUP, MANAGED_BY, WAIT_FOR_WORKERS, MpiJob, ReplicaSpec, RunPolicy

CLEAN_POLICIES = ("All", "None", "Running")
RESTART_POLICIES = ("Never", "OnFailure")
CREATION_POLICIES = (AT_STARTUP, WAIT_FOR_WORKERS)
MULTIKUEUE = "kueue.x-k8s.io/multikueue"
MOST_MESSAGE = 1024
_LABEL = re.compile("[a-z]([-a-z0-9]*[a-z0-9])?")
LABEL_RULE = (
    "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an alphabetic character,"
    " and end with an alphanumeric character (e.g. 'my-name',  or 'abc-123', regex used for validation is"
    " '[a-z]([-a-z0-9]*[a-z0-9])?')"
)


def explain_refusal(job: MpiJob) -> str:
    """One sentence with everything that is wrong; empty for a job that can be run."""
    found = [*_name(job), *_replicas(job), *_spec(job), *_run_policy(job.spec.run_policy)]
    if not found:
        return ""
    together = found[0] if len(found) == 1 else f"[{', '.join(found)}]"
    return shorten(f"Found validation errors: {together}")


def shorten(message: str) -> str:
    return message if len(message) <= MOST_MESSAGE else f"{message[: MOST_MESSAGE - 3]}..."


def _name(job: MpiJob) -> Iterator[str]:
    last = job.worker_name(max(job.workers, 1) - 1)
    wrong: list[str] = []
    if len(last) > 63:
        wrong.append("must be no more than 63 characters")
    if not _LABEL.fullmatch(last):
        wrong.append(LABEL_RULE)
    if wrong:
        why = f'will not able to create pod and service with invalid DNS label "{last}": {", ".join(wrong)}'
        yield f'metadata.name: Invalid value: "{job.name}": {why}'


def _replicas(job: MpiJob) -> Iterator[str]:
    path, replicas = "spec.mpiReplicaSpecs", job.spec.mpi_replica_specs
    if replicas.launcher is None:
        yield f"{path}[Launcher]: Required value: must have Launcher replica spec"
    else:
        yield from _replica(f"{path}[Launcher]", replicas.launcher)
        if replicas.launcher.replicas not in (None, 1):
            yield f"{path}[Launcher].replicas: Invalid value: {replicas.launcher.replicas}: must be 1"
    if replicas.worker is not None:
        yield from _replica(f"{path}[Worker]", replicas.worker)
        count = replicas.worker.replicas
        if count is None:
            yield f"{path}[Worker].replicas: Required value: must define number of replicas"
        elif count <= 0:
            yield f"{path}[Worker].replicas: Invalid value: {count}: must be greater than or equal to 1"


def _replica(path: str, replica: ReplicaSpec) -> Iterator[str]:
    if replica.restart_policy:
        yield from _one_of(f"{path}.restartPolicy", replica.restart_policy, RESTART_POLICIES)
    if not replica.containers:
        yield f"{path}.template.spec.containers: Required value: must define at least one container"


def _spec(job: MpiJob) -> Iterator[str]:
    yield from _not_negative("spec.slotsPerWorker", job.spec.slots_per_worker)
    if job.spec.launcher_creation_policy:
        yield from _one_of("spec.launcherCreationPolicy", job.spec.launcher_creation_policy, CREATION_POLICIES)
    if job.spec.ssh_auth_mount_path == "":
        yield "spec.sshAuthMountPath: Required value: must have a mount path for SSH credentials"


def _run_policy(policy: RunPolicy) -> Iterator[str]:
    path = "spec.runPolicy"
    if policy.clean_pod_policy:
        yield from _one_of(f"{path}.cleanPodPolicy", policy.clean_pod_policy, CLEAN_POLICIES)
    yield from _not_negative(f"{path}.ttlSecondsAfterFinished", policy.ttl_seconds_after_finished)
    yield from _not_negative(f"{path}.activeDeadlineSeconds", policy.active_deadline_seconds)
    yield from _not_negative(f"{path}.backoffLimit", policy.backoff_limit)
    if policy.managed_by:
        yield from _one_of(f"{path}.managedBy", policy.managed_by, (MANAGED_BY, MULTIKUEUE))


def _one_of(path: str, value: str, known: tuple[str, ...]) -> Iterator[str]:
    if value not in known:
        named = ", ".join(f'"{one}"' for one in known)
        yield f'{path}: Unsupported value: "{value}": supported values: {named}'


def _not_negative(path: str, value: int | None) -> Iterator[str]:
    if value is not None and value < 0:
        yield f"{path}: Invalid value: {value}: must be greater than or equal to 0"
