"""What a launcher's log and a container's end give away. Pure: texts and states in, causes out."""

import re
from collections.abc import Mapping
from re import Pattern
from typing import Any, NamedTuple, Optional

from .documents import int_at, mapping_at, text_at
from .pods import Pod, container_status, name_of

HOSTFILE_FIX = (
    "set PRTE_MCA_prte_default_hostfile=/etc/mpi/hostfile in the launcher's env (jobs made by MPIJob(...) have it), or "
    "give mpirun --hostfile /etc/mpi/hostfile, and at least as many ranks (-np) as there are workers"
)


class Symptom(NamedTuple):
    cause: str
    verdict: str
    fix: str


class Sign(NamedTuple):
    pattern: "Pattern[str]"
    symptom: Symptom


def _pattern(words: str, cause: str, verdict: str, fix: str) -> Sign:
    return Sign(re.compile(words, re.IGNORECASE), Symptom(cause, verdict, fix))


IN_LOGS: tuple[Sign, ...] = (
    _pattern(
        r"could not resolve hostname|name or service not known|temporary failure in name resolution",
        "SshResolve",
        "the launcher cannot resolve the workers' host names, so ssh does not reach them",
        "see that the workers run (get_worker_statuses()) and that the namespace's DNS answers; a launcher that is "
        "faster than its workers is tried again, as backoff_limit says",
    ),
    _pattern(
        r"ssh: connect to host|connection refused.*port 22|port 22.*connection (?:refused|timed out)|no route to host",
        "SshConnect",
        "ssh from the launcher does not reach a worker",
        'check that no NetworkPolicy or Istio sidecar stands between the pods (sidecar.istio.io/inject: "false"), '
        "and that the image runs sshd where the operator expects it",
    ),
    _pattern(
        r"permission denied \(publickey|host key verification failed|bad permissions|"
        r"load key .*: (?:error|invalid|permission)",
        "SshKey",
        "a worker refuses the launcher's ssh key",
        "make sshAuthMountPath the .ssh folder of the user that the image runs as, and see that sshd there has "
        "StrictModes no; on OpenShift the random user id needs an image that allows it",
    ),
    _pattern(
        r"not enough slots available|there are not enough slots|more processes than .* slots",
        "NotEnoughSlots",
        "mpirun wants more ranks than the workers have slots",
        "raise workers or slots_per_worker, or lower -np: workers × slots_per_worker is the most that mpirun starts",
    ),
    _pattern(
        r"chroot\(.*operation not permitted|PAM: .*(?:error|fail)|setgroups.*operation not permitted",
        "SshPrivileges",
        "sshd in a worker may not do what it needs to: its user has too few privileges",
        "use an image whose sshd runs as that user (on a port above 1024), or allow the SCC anyuid",
    ),
    _pattern(
        r"running as root is (?:\*)?not(?:\*)? recommended|mpirun has detected an attempt to run as root",
        "RunsAsRoot",
        "mpirun refuses to run as root",
        "set env={'OMPI_ALLOW_RUN_AS_ROOT': '1', 'OMPI_ALLOW_RUN_AS_ROOT_CONFIRM': '1'}, or mpirun --allow-run-as-root",
    ),
    _pattern(
        r"CUDA out of memory|CUDA_ERROR_OUT_OF_MEMORY|cudaErrorMemoryAllocation",
        "GpuOutOfMemory",
        "a rank wants more memory than its GPU has, or than it was given of it",
        "use a smaller batch, or ask for more in ResourceRequirements (gpu_memory_mb, or whole GPUs)",
    ),
    _pattern(
        r"on signal 9 \(killed\)|killed by signal 9|exit(?:ed)? (?:status|code):? 137|out of memory|oom-kill",
        "OutOfMemory",
        "a rank was killed, most likely because it was out of memory (OOM, signal 9)",
        "raise memory in ResourceRequirements, or let each rank hold less",
    ),
    _pattern(
        r"NCCL (?:error|WARN)|ncclSystemError|ncclUnhandledCudaError|ncclInternalError",
        "Nccl",
        "NCCL failed between the ranks",
        "set env={'NCCL_DEBUG': 'INFO'} and look at the launcher's log; NCCL_SOCKET_IFNAME chooses the interface",
    ),
)
EXIT_CODES: Mapping[int, tuple[str, str]] = {
    126: ("the command cannot be executed", "see that it is executable and made for this machine's architecture"),
    127: ("the command was not found", "check command, and that the image has it in its PATH"),
    134: ("the program aborted (SIGABRT)", "its last lines in get_logs() tell why"),
    137: ("the program was killed (SIGKILL), most likely out of memory", "raise memory in ResourceRequirements"),
    139: ("the program crashed (SIGSEGV)", "mixed versions of MPI or CUDA in the image are a usual cause"),
    143: (
        "the program was asked to end (SIGTERM)",
        "see who deleted the pod, or whether active_deadline_seconds was over",
    ),
}


def symptom_in_log(log: str) -> Optional[tuple[Symptom, str]]:
    """The first that the table knows, and the line that shows it."""
    for pattern, symptom in IN_LOGS:
        line = next((line for line in log.splitlines() if pattern.search(line)), None)
        if line is not None:
            return symptom, line.strip()
    return None


def symptom_of_exit(code: int) -> Symptom:
    known = EXIT_CODES.get(code, ("the program failed", "its last lines in get_logs() tell why"))
    return Symptom("ExitCode", f"the launcher ended with exit code {code}: {known[0]}", known[1])


def exit_of(pod: Pod) -> Mapping[str, Any]:
    """How its container last ended, or nothing."""
    status = container_status(pod)
    return mapping_at(status, "state", "terminated") or mapping_at(status, "lastState", "terminated")


def waiting_reason(pod: Pod) -> tuple[str, str]:
    """Why its container has not started, with what the kubelet says."""
    waiting = mapping_at(container_status(pod), "state", "waiting")
    return text_at(waiting, "reason"), text_at(waiting, "message")


def describe_exit(pod: Pod) -> str:
    ended = exit_of(pod)
    reason = text_at(ended, "reason")
    return f"{name_of(pod)} ended with exit code {int_at(ended, 'exitCode')}" + (f" ({reason})" if reason else "")
