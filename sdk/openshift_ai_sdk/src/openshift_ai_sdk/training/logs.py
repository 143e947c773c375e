"""Which pod's log is meant: the launcher's last attempt, or one worker's."""

from collections.abc import Iterator, Mapping
from typing import Callable, Optional

from kubernetes.client.exceptions import ApiException

from . import api, jobs
from .documents import Document
from .errors import api_error, status_of
from .following import Follower
from .lives import Life, own_pods
from .pods import is_going, mpi_container, name_of, newest, oldest_first, selector
from .statuses import Status
from .watching import if_known, patiently

NO_LAUNCHER = (
    "MPIJob {job} has no launcher pod; it is not there yet, or it went with its log when the job was suspended or "
    "ttl_seconds_after_finished was over"
)
NO_WORKER = (
    "MPIJob {job} has no pod of worker {index}; it is not there yet, or it went with its log when the job ended "
    "(clean_pod_policy)"
)


def read_log(namespace: str, job: str, worker: Optional[int], tail_lines: Optional[int], known: Document) -> str:
    """What the pod has written until now. Raises ApiException if it is not there or has not started.

    `known` is the job as it was last seen, or nothing; where pods are going, it is looked at again.
    """
    found = oldest_first(api.get(api.in_namespace(namespace, "pods"), _query(job, worker)))
    if any(map(is_going, found)):
        known = if_known(lambda: jobs.get(namespace, job)) or known
    pod = newest(own_pods(known, found))
    if pod is None:
        raise api_error(404, missing(namespace, job, worker))
    query: Document = {"container": mpi_container(pod)}
    if tail_lines is not None:
        query["tailLines"] = tail_lines
    return api.text(api.in_namespace(namespace, "pods", name_of(pod), "log"), query)


def follow_log(
    namespace: str, job: str, worker: Optional[int], tail_lines: Optional[int], judge: Callable[[Document], Status]
) -> Iterator[str]:
    """Line by line, until the job has ended, or is another one."""
    life = Life()

    def is_done() -> bool:
        try:
            document = patiently(lambda: jobs.get(namespace, job))
        except ApiException as error:
            if status_of(error) != 404 or not life.has_begun:
                raise
            return True
        return not life.sees(document) or judge(document).is_finished

    gone, query = missing(namespace, job, worker), _query(job, worker)
    outlives = worker is not None
    return Follower(namespace, query, life.own_pods, is_done, tail_lines, gone, may_outlive=outlives).lines()


def missing(namespace: str, job: str, worker: Optional[int]) -> str:
    sentence = NO_LAUNCHER if worker is None else NO_WORKER
    return sentence.format(job=f"{namespace}/{job}", index=worker)


def _query(job: str, worker: Optional[int]) -> Mapping[str, object]:
    """A worker's pod is found by its name: its label counts from one where the launcher is a worker too."""
    if worker is None:
        return {"labelSelector": selector(job, "launcher")}
    return {"labelSelector": selector(job), "fieldSelector": f"metadata.name={job}-worker-{worker}"}
