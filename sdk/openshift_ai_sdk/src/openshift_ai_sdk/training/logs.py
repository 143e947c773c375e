"""Which pod's log is meant: the launcher's last attempt, or one worker's."""

from collections.abc import Iterator, Mapping
from typing import Callable, Optional

from kubernetes.client.exceptions import ApiException

from . import api, jobs
from .documents import Document
from .errors import api_error, status_of
from .following import Follower
from .pods import mpi_container, name_of, oldest_first, selector
from .statuses import Status
from .watching import patiently

NO_LAUNCHER = (
    "MPIJob {job} has no launcher pod; it is not there yet, or it went with its log when the job was suspended or "
    "ttl_seconds_after_finished was over"
)
NO_WORKER = (
    "MPIJob {job} has no pod of worker {index}; it is not there yet, or it went with its log when the job ended "
    "(clean_pod_policy)"
)


def read_log(namespace: str, job: str, worker: Optional[int], tail_lines: Optional[int]) -> str:
    """What the pod has written until now. Raises ApiException if it is not there or has not started."""
    found = oldest_first(api.get(api.in_namespace(namespace, "pods"), _query(job, worker)))
    pod = found[-1] if found else None
    if pod is None:
        raise api_error(404, missing(namespace, job, worker))
    query: Document = {"container": mpi_container(pod)}
    if tail_lines is not None:
        query["tailLines"] = tail_lines
    return api.text(api.in_namespace(namespace, "pods", name_of(pod), "log"), query)


def follow_log(
    namespace: str, job: str, worker: Optional[int], tail_lines: Optional[int], judge: Callable[[Document], Status]
) -> Iterator[str]:
    """Line by line, until the job has ended."""

    seen: list[bool] = []

    def is_done() -> bool:
        try:
            document = patiently(lambda: jobs.get(namespace, job))
        except ApiException as error:
            if status_of(error) != 404 or not seen:
                raise
            return True
        seen[:] = [True]
        return judge(document).is_finished

    gone = missing(namespace, job, worker)
    return Follower(namespace, _query(job, worker), is_done, tail_lines, gone, may_outlive=worker is not None).lines()


def missing(namespace: str, job: str, worker: Optional[int]) -> str:
    sentence = NO_LAUNCHER if worker is None else NO_WORKER
    return sentence.format(job=f"{namespace}/{job}", index=worker)


def _query(job: str, worker: Optional[int]) -> Mapping[str, object]:
    """A worker's pod is found by its name: its label counts from one where the launcher is a worker too."""
    if worker is None:
        return {"labelSelector": selector(job, "launcher")}
    return {"labelSelector": selector(job), "fieldSelector": f"metadata.name={job}-worker-{worker}"}
