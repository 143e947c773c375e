"""The pods of a Job: which indexes are done, which pods are missing, and when to try again after a failure."""

from collections.abc import Collection, Iterable, Iterator, Sequence
from datetime import datetime

from tessera.embedded.controllers.objects import JOBS, Job
from tessera.embedded.controllers.pods import Pod, make_pod, named
from tessera.embedded.controllers.times import read_time
from tessera.embedded.resources.parts import each
from tessera.kube.objects import Document
from tessera.model.mpi_hosts import FIRST_POD_NAME

INDEX = "batch.kubernetes.io/job-completion-index"
INDEX_VARIABLE = "JOB_COMPLETION_INDEX"
FIRST_WAIT_S = 10.0
MOST_WAIT_S = 600.0
MOST_AT_ONCE = 500


def index_of(pod: Pod) -> int | None:
    text = (pod.metadata.annotations or {}).get(INDEX, "")
    return int(text) if text.isdecimal() else None


def succeeded_indexes(job: Job, pods: Iterable[Pod]) -> set[int]:
    """Those that a pod has finished, and those that the status says were finished before."""
    known = read_indexes(job.status.get("completedIndexes", ""))
    found = {index_of(pod) for pod in pods if pod.status.phase == "Succeeded"}
    completions = job.spec.completions or 0
    return {index for index in known | found if index is not None and index < completions}


def write_indexes(indexes: Collection[int]) -> str:
    """As in `0,2-4,7`."""
    runs: list[list[int]] = []
    for index in sorted(indexes):
        if runs and index == runs[-1][-1] + 1:
            runs[-1] = [runs[-1][0], index]
        else:
            runs.append([index])
    return ",".join("-".join(map(str, run)) for run in runs)


def read_indexes(text: str) -> set[int]:
    found: set[int] = set()
    for run in filter(None, text.split(",")):
        first, _, last = run.partition("-")
        found.update(range(int(first), int(last or first) + 1))
    return found


def wait_after_failure_s(pods: Iterable[Pod], now: datetime) -> float:
    """Longer after each failure since the last success; nothing, if the last pod that ended did so well."""
    ended = sorted((_ended_at(pod), pod.status.phase == "Failed") for pod in pods if pod.status.phase in _WAITED_FOR)
    failures = 0
    for _, has_failed in ended:
        failures = failures + 1 if has_failed else 0
    if not failures:
        return 0.0
    whole_s = min(FIRST_WAIT_S * 2.0 ** min(failures - 1, 10), MOST_WAIT_S)
    return max(0.0, whole_s - (now - ended[-1][0]).total_seconds())


_WAITED_FOR = ("Succeeded", "Failed")


def missing_pods(
    job: Job, pods: Sequence[Pod], done: Collection[int], count: int, suffix: Iterator[str]
) -> list[Document]:
    """So many more pods than these; of an indexed Job, for the first indexes that nobody works on."""
    count = min(count, MOST_AT_ONCE)
    if not job.spec.is_indexed:
        made = [_make(job, None, next(suffix)) for _ in range(count)]
        return [_as_first(job, pods, made[0]), *made[1:]] if made else []
    taken = {index_of(pod) for pod in pods if pod.is_active}
    free = [index for index in range(job.spec.completions or 0) if index not in taken and index not in done]
    return [_make(job, index, next(suffix)) for index in free[:count]]


def _make(job: Job, index: int | None, suffix: str) -> Document:
    metadata = job.metadata
    if index is None:
        return make_pod(job.spec.template, JOBS, metadata, **named(f"{metadata.name}-", suffix))
    mark = {INDEX: str(index)}
    name = named(f"{metadata.name}-{index}-", suffix)
    pod = make_pod(job.spec.template, JOBS, metadata, labels=mark, annotations=mark, **name)
    told = {part: [_with_index(one) for one in each(pod["spec"], part)] for part in ("initContainers", "containers")}
    spec = {**pod["spec"], **{part: containers for part, containers in told.items() if containers}}
    spec.setdefault("hostname", f"{metadata.name}-{index}")
    return {**pod, "spec": spec}


def _as_first(job: Job, pods: Sequence[Pod], made: Document) -> Document:
    """Called as the Job wishes for its first pod, unless one of its pods is called so already."""
    name = (job.metadata.annotations or {}).get(FIRST_POD_NAME)
    if not name or any(pod.metadata.name == name for pod in pods):
        return made
    return {**made, "metadata": {**made["metadata"], "name": name}}


def _with_index(container: Document) -> Document:
    env = each(container, "env")
    if any(one["name"] == INDEX_VARIABLE for one in env):
        return container
    source = {"fieldRef": {"apiVersion": "v1", "fieldPath": f"metadata.labels['{INDEX}']"}}
    return {**container, "env": [*env, {"name": INDEX_VARIABLE, "valueFrom": source}]}


def _ended_at(pod: Pod) -> datetime:
    """When its last container ended, by what is known of it."""
    states = (status.state for status in pod.status.container_statuses or ())
    times = [state.terminated.finished_at for state in states if state and state.terminated]
    return read_time(max((time for time in times if time), default=pod.metadata.creation_timestamp))
