"""The pods of an MPIJob, as documents: its workers, and the Job of its launcher. Pure.

As the MPI operator makes them, but for how a worker is entered: in the place of sshd it runs our host, and mpirun is
told to call our agent. All pods share this machine's network, so MPI is kept to the loopback interface.
"""

import re
from collections.abc import Mapping
from pathlib import PurePath

import msgspec

from tessera.kube.objects import Document
from tessera.model.annotations.keys import GANG
from tessera.model.mpi_hosts import BOARD, ENTER, FIRST_POD_NAME, HOST, HOST_PROGRAM, JOB
from tessera.operators.mpi_children import (
    DISCOVER_HOSTS,
    HOSTFILE,
    HYDRA_HOSTFILE,
    OPEN_MPI_HOSTFILE,
    wants_gang,
)
from tessera.operators.mpi_objects import (
    INDEX_LABEL,
    INTEL,
    JOBS,
    LAUNCHER,
    OPEN_MPI,
    WORKER,
    MpiJob,
    ReplicaSpec,
    labels_of,
    owner_reference,
    part,
)

CONFIG_VOLUME, CONFIG_PATH = "mpi-job-config", "/etc/mpi"
CONFIG_FILES = {HOSTFILE: 0o444, OPEN_MPI_HOSTFILE: 0o444, HYDRA_HOSTFILE: 0o444, DISCOVER_HOSTS: 0o555}
ROLE = "K_MPI_JOB_ROLE"
SSHD = "sshd"
SSHD_IN_SCRIPT = re.compile(r"(?<![\w./-])(?:/usr)?(?:/local)?(?:/s?bin/)?sshd(?![\w./-])")
"""As a shell is told to start it. Other words that have it in them, as in `/run/sshd`, are not meant."""
SHELLS = ("sh", "bash", "dash", "ash")
DOMAIN = "svc.cluster.local"
SSH_ARGUMENTS = "-o ConnectionAttempts=10"
MESSAGE_FROM_LOGS = "FallbackToLogsOnError"


class MpiSettings(msgspec.Struct, frozen=True, kw_only=True):
    """Where this machine has our programs, before and behind what is in PATH; `boards` is where jobs have theirs.

    Where it `shows_mounts` not, a launcher reads its hostfiles from the board. `locations` say where it has MPI.
    """

    first: str
    last: str
    boards: str
    shows_mounts: bool = True
    locations: Mapping[str, str] = {}

    def board(self, job: MpiJob) -> str:
        return f"{self.boards}/{job.uid}"

    def config_path(self, job: MpiJob) -> str:
        return CONFIG_PATH if self.shows_mounts else self.board(job)


def make_worker(job: MpiJob, replica: ReplicaSpec, index: int, settings: MpiSettings) -> Document:
    name = job.worker_name(index)
    shifted = index + 1 if job.runs_launcher_as_worker else index
    spec = _pod_spec(job, replica, name, default_restart="Never")
    first, *others = replica.containers
    container = enterable(first)
    set_later = {ROLE: WORKER, **_own_variables(job, settings), HOST: name}
    container["env"] = merge_variables(container, _unless_set(), set_later, settings)
    metadata = _metadata(job, replica, WORKER)
    metadata["labels"][INDEX_LABEL] = str(shifted)
    if wants_gang(job):
        metadata["annotations"] = {**metadata.get("annotations", {}), GANG: job.name}
    owned = {"name": name, "namespace": job.namespace, "ownerReferences": [owner_reference(job)]}
    return {"metadata": {**metadata, **owned}, "spec": {**spec, "containers": [container, *others]}}


def enterable(container: Document) -> Document:
    """A worker's container, with our host where the operator would have sshd; all else runs as it is."""
    words: dict[str, list[str]] = {name: container.get(name) or [] for name in ("command", "args")}
    program = next((PurePath(word).name for word in (*words["command"], *words["args"])), SSHD)
    if program == SSHD:
        return {**container, "command": [HOST_PROGRAM], "args": []}
    if program in SHELLS:
        ours = {name: [SSHD_IN_SCRIPT.sub(HOST_PROGRAM, word) for word in said] for name, said in words.items()}
        return {**container, **{name: said for name, said in ours.items() if said}}
    return dict(container)


def make_launcher(job: MpiJob, replica: ReplicaSpec, settings: MpiSettings, *, is_name_free: bool) -> Document:
    """`is_name_free` says whether its pod can be called as the Job is."""
    policy = job.spec.run_policy
    limits = {
        "ttlSecondsAfterFinished": policy.ttl_seconds_after_finished,
        "activeDeadlineSeconds": policy.active_deadline_seconds,
        "backoffLimit": policy.backoff_limit,
        "suspend": True if job.is_suspended else None,
    }
    metadata: Document = {
        "name": job.launcher_name,
        "namespace": job.namespace,
        "labels": {"app": job.name, **labels_of(job)},
        "ownerReferences": [owner_reference(job)],
    }
    if is_name_free:
        metadata["annotations"] = {FIRST_POD_NAME: job.launcher_name}
    spec: Document = {name: value for name, value in limits.items() if value is not None}
    spec |= {"podReplacementPolicy": "Failed", "template": _launcher_template(job, replica, settings)}
    return {"apiVersion": JOBS.api_version, "kind": JOBS.name, "metadata": metadata, "spec": spec}


def _launcher_template(job: MpiJob, replica: ReplicaSpec, settings: MpiSettings) -> Document:
    spec = _pod_spec(job, replica, job.launcher_name, default_restart="OnFailure")
    first, *others = replica.containers
    container = {"terminationMessagePolicy": MESSAGE_FROM_LOGS, **first}
    set_later = {ROLE: LAUNCHER, **_mpi_variables(job, settings), **_own_variables(job, settings)}
    if job.runs_launcher_as_worker:
        set_later[HOST] = job.launcher_name
    else:
        set_later |= {"NVIDIA_VISIBLE_DEVICES": "", "NVIDIA_DRIVER_CAPABILITIES": ""}
    container["env"] = merge_variables(container, _unless_set(), set_later, settings)
    container["volumeMounts"] = [
        *(container.get("volumeMounts") or ()),
        {"name": CONFIG_VOLUME, "mountPath": CONFIG_PATH},
    ]
    items = [{"key": name, "path": name, "mode": mode} for name, mode in CONFIG_FILES.items()]
    volume = {"name": CONFIG_VOLUME, "configMap": {"name": job.config_name, "items": items}}
    metadata = _metadata(job, replica, LAUNCHER)
    if job.runs_launcher_as_worker:
        metadata["labels"][INDEX_LABEL] = "0"
    volumes = [*(spec.get("volumes") or ()), volume]
    return {"metadata": metadata, "spec": {**spec, "containers": [container, *others], "volumes": volumes}}


def _pod_spec(job: MpiJob, replica: ReplicaSpec, hostname: str, *, default_restart: str) -> Document:
    """Pods of a job know each other by their names alone."""
    searches = [*(part(replica.pod_spec, "dnsConfig").get("searches") or ()), f"{job.name}.{job.namespace}.{DOMAIN}"]
    return {
        **replica.pod_spec,
        "hostname": hostname,
        "subdomain": job.name,
        "restartPolicy": replica.restart_policy or default_restart,
        "dnsConfig": {**part(replica.pod_spec, "dnsConfig"), "searches": searches},
    }


def _metadata(job: MpiJob, replica: ReplicaSpec, role: str) -> Document:
    labels = {**part(replica.template, "metadata", "labels"), **labels_of(job, role)}
    annotations = part(replica.template, "metadata", "annotations")
    return {"labels": labels, **({"annotations": annotations} if annotations else {})}


def merge_variables(
    container: Document,
    unless_set: Mapping[str, str],
    set_later: Mapping[str, str],
    settings: MpiSettings,
) -> list[Document]:
    """The user's variables, what they may set otherwise, and what they may not. Each is there once."""
    given: list[Document] = [one for one in container.get("env") or () if one["name"] not in set_later]
    known = {one["name"] for one in given}
    added = {name: value for name, value in {**settings.locations, **unless_set}.items() if name not in known}
    own = {**added, **set_later}
    path = f"{settings.first}:{{}}:{settings.last}"
    kept = [_with_path(one, path) for one in given]
    if "PATH" not in known:
        kept.append({"name": "PATH", "value": path.format("$(PATH)")})
    return [*kept, *({"name": name, "value": value} for name, value in own.items())]


def _with_path(variable: Document, path: str) -> Document:
    """Our programs are found whatever the user's PATH is, unless it comes from elsewhere."""
    if variable["name"] != "PATH" or "valueFrom" in variable:
        return variable
    return {**variable, "value": path.format(variable.get("value", ""))}


def _mpi_variables(job: MpiJob, settings: MpiSettings) -> dict[str, str]:
    """For every implementation: which of them this machine has is not known here."""
    folder, is_open = settings.config_path(job), job.implementation == OPEN_MPI
    open_hosts = f"{folder}/{HOSTFILE if is_open else OPEN_MPI_HOSTFILE}"
    hydra_hosts = f"{folder}/{HYDRA_HOSTFILE if is_open else HOSTFILE}"
    agent = ENTER if " " in settings.first else f"{settings.first}/{ENTER}"
    variables = {
        "OMPI_MCA_orte_keep_fqdn_hostnames": "true",
        "OMPI_MCA_orte_default_hostfile": open_hosts,
        "OMPI_MCA_plm_rsh_args": SSH_ARGUMENTS,
        "OMPI_MCA_orte_set_default_slots": str(job.slots),
        "OMPI_MCA_plm_rsh_agent": agent,
        "PRTE_MCA_prte_default_hostfile": open_hosts,
        "PRTE_MCA_prte_keep_fqdn_hostnames": "true",
        "PRTE_MCA_plm_ssh_agent": agent,
        "HYDRA_HOST_FILE": hydra_hosts,
        "HYDRA_LAUNCHER": "ssh",
        "HYDRA_LAUNCHER_EXEC": agent,
        "HYDRA_LAUNCH_EXTRA_ARGS": SSH_ARGUMENTS,
    }
    if job.implementation == INTEL:
        variables |= {
            "I_MPI_HYDRA_HOST_FILE": hydra_hosts,
            "I_MPI_HYDRA_BOOTSTRAP": "ssh",
            "I_MPI_HYDRA_BOOTSTRAP_EXEC": agent,
            "I_MPI_HYDRA_BOOTSTRAP_EXEC_EXTRA_ARGS": SSH_ARGUMENTS,
            "I_MPI_PERHOST": str(job.slots),
        }
    return variables


def _unless_set() -> dict[str, str]:
    """How MPI behaves on one machine. Whoever knows better sets it in the job."""
    return {
        "OMPI_ALLOW_RUN_AS_ROOT": "1",
        "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
        "PRTE_ALLOW_RUN_AS_ROOT": "1",
        "PRTE_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
        "OMPI_MCA_oob_tcp_if_include": "lo",
        "OMPI_MCA_btl_tcp_if_include": "lo",
        # Each host takes all cores for its own, and every first rank would be bound to the same one.
        "OMPI_MCA_hwloc_base_binding_policy": "none",
        "PRTE_MCA_hwloc_default_binding_policy": "none",
        "OMPI_MCA_mpi_yield_when_idle": "1",
        # Debian's would fill the launcher's log with words about compression.
        "PMIX_MCA_pcompress_base_silence_warning": "1",
        "OMPI_MCA_pml": "ob1",
        "OMPI_MCA_btl": "^openib,ofi,uct",
        "HYDRA_IFACE": "lo",
        # Else ranks would have the launcher's variables, and with them the cards that it has not.
        "HYDRA_ENV": "none",
    }


def _own_variables(job: MpiJob, settings: MpiSettings) -> dict[str, str]:
    return {JOB: job.uid, BOARD: settings.board(job)}
