"""What can be done with a job at a cluster. All of it blocks; both kinds of job call it, one of them in a thread."""

import warnings
from collections.abc import Iterator
from typing import Any, Callable, Optional

from kubernetes.client.exceptions import ApiException

from . import jobs, validation
from .description import JobDescription
from .documents import Document, text_at
from .errors import NoSuchWorker, api_error, raise_from, status_of
from .events import events_around, events_of
from .evidence import Evidence, Explanation
from .explaining import explain
from .lives import Birth, Life, own_events, own_pods
from .logs import follow_log, read_log
from .metrics import collect
from .notebook import progress_teller, value_teller
from .pods import Pod, is_going, launchers, list_pods, name_of, newest, worker_index, worker_status, workers
from .preflight import check_quota
from .prometheus import find_prometheus, query
from .ranks import Ranks, RanksNotEverywhere, is_worth_a_warning, ranks_by_annotation, ranks_by_logs
from .statuses import RUNNING, SUCCEEDED, Status, judge_conditions, judge_events, judge_pods
from .waiting import check_times, timeout_sentence, wait_until_finished
from .watching import if_known

LOG_TO_EXPLAIN = 200
"""How many lines of the launcher's log are looked at for a cause."""


def create(job: JobDescription, dry_run: bool) -> None:
    manifest = job.to_dict()
    validation.check_creatable(manifest)
    _check_room(job, manifest)
    made = jobs.create(job.namespace, manifest, dry_run=dry_run)
    if not dry_run:
        job.name = job.name or text_at(made, "metadata", "name")
        meet(job, made)
        remember(job, None)


def _check_room(job: JobDescription, manifest: Document) -> None:
    """A job that is there already fills the quota itself: that it is there is what the API server then says."""
    try:
        check_quota(job.namespace, manifest)
    except ApiException:
        there = if_known(lambda: jobs.get(job.namespace, job.name)) if job.name else None
        if not text_at(there, "metadata", "uid"):
            raise


def get_status(job: JobDescription) -> Status:
    return look(job, jobs.get(job.namespace, job.name))


def look(job: JobDescription, document: Document) -> Status:
    """Judge it, ask for events and pods only where its conditions do not answer, and remember the judgement."""
    status = judge_conditions(document) or _judge_silent(job, document)
    meet(job, document)
    remember(job, status)
    return status


def _judge_silent(job: JobDescription, document: Document) -> Status:
    events = if_known(lambda: events_of(job.namespace, job.name)) or []
    told = judge_events(document, events)
    return told or judge_pods(document, if_known(lambda: _pods(job, document)) or [])


def _pods(job: JobDescription, document: Document) -> list[Pod]:
    return own_pods(document, list_pods(job.namespace, job.name))


def remember(job: JobDescription, status: Optional[Status]) -> None:
    job._status = status  # pyright: ignore[reportPrivateUsage] # ours: the other half of the class


def meet(job: JobDescription, document: Document) -> None:
    """This is the job at the API server: whatever bears its name and is older is not its own."""
    born = text_at(document, "metadata", "creationTimestamp")
    job._birth = Birth(job.namespace, job.name, born)  # pyright: ignore[reportPrivateUsage]


def _known(job: JobDescription) -> Document:
    """As much as is remembered of the job. It may be another one by now, but not one that is older."""
    birth = job._birth  # pyright: ignore[reportPrivateUsage]
    if birth is None or (birth.namespace, birth.name) != (job.namespace, job.name):
        return {}
    return {"metadata": {"creationTimestamp": birth.born}}


def wait_for_completion(
    job: JobDescription,
    timeout: float,
    poll_interval: float,
    callback: Optional[Callable[[str], None]],
    progress: bool,
) -> Status:
    check_times(timeout, poll_interval)
    tellers = [progress_teller(f"{job.namespace}/{job.name}")] if progress else []
    if callback is not None:
        tellers.append(value_teller(callback))
    seen: list[Document] = []

    def judged(document: Document) -> Status:
        seen[:] = [document]
        return look(job, document)

    def told(status: Status) -> None:
        for teller in tellers:
            teller(status)

    found = _finder(job.namespace, job.name)
    final = wait_until_finished(job.namespace, job.name, found, judged, timeout, poll_interval, told)
    if final is None:
        why = if_known(lambda: explain_job(job).verdict)
        raise TimeoutError(timeout_sentence(job.namespace, job.name, job.status_detail, timeout, why))
    if final.value == SUCCEEDED:
        _warn_of_idle_workers(seen[0])
    return final


def _finder(namespace: str, name: str) -> Callable[[float], Document]:
    """Finds the job as long as it is the one that was there first, and says so when it is not."""
    life, gone = Life(), f"MPIJob {namespace}/{name} was deleted while it was waited for"

    def find(answer_s: float) -> Document:
        try:
            document = jobs.get(namespace, name, answer_s)
        except ApiException as error:
            if status_of(error) == 404 and life.has_begun:
                raise_from(error, gone)
            raise
        if not life.sees(document):
            raise api_error(404, f"{gone}; what is there now is another of its name")
        return document

    return find


def get_logs(job: JobDescription, worker: Optional[int], tail_lines: Optional[int]) -> str:
    check_log_request(job, worker, tail_lines)
    return read_log(job.namespace, job.name, worker, tail_lines, _known(job))


def follow_logs(job: JobDescription, worker: Optional[int], tail_lines: Optional[int]) -> Iterator[str]:
    check_log_request(job, worker, tail_lines)
    return follow_log(job.namespace, job.name, worker, tail_lines, lambda document: look(job, document))


def check_log_request(job: JobDescription, worker: Optional[int], tail_lines: Optional[int]) -> None:
    wrong_tail = validation.tail_problem(tail_lines)
    if wrong_tail:
        raise ValueError(wrong_tail)
    wrong_worker = validation.worker_index_problem(worker, job.workers) if worker is not None else None
    if wrong_worker:
        raise api_error(404, f"MPIJob {job.namespace}/{job.name}: {wrong_worker}", kind=NoSuchWorker)


def get_worker_statuses(job: JobDescription) -> list[dict[str, Any]]:
    found = workers(list_pods(job.namespace, job.name), job.name)
    is_unsure = not found or any(map(is_going, found))  # no job is not the same as no workers
    known = jobs.get(job.namespace, job.name) if is_unsure else _known(job)
    return [worker_status(pod, worker_index(pod, job.name) or 0) for pod in own_pods(known, found)]


def get_metrics(
    job: JobDescription, url: Optional[str], token: Optional[str], ca_file: Optional[str], window: str
) -> dict[str, Any]:
    validation.check_window(window)
    endpoint = find_prometheus(url, token, ca_file)
    return collect(
        lambda expression: query(endpoint, expression), job.namespace, job.name, job.workers, window, endpoint.url
    )


def explain_job(job: JobDescription) -> Explanation:
    document = jobs.get(job.namespace, job.name)
    status = look(job, document)
    pods = _pods(job, document)
    log = ""
    if newest(launchers(pods)) is not None and status.value != SUCCEEDED:
        log = if_known(lambda: read_log(job.namespace, job.name, None, LOG_TO_EXPLAIN, document)) or ""
    events = own_events(document, pods, if_known(lambda: events_around(job.namespace, job.name)) or [])
    ranks = _ranks(document, job, pods) if status.value in (RUNNING, SUCCEEDED) else None
    return explain(Evidence(document, status, pods, events, log, ranks))


def where_ranks_ran(job: JobDescription) -> Ranks:
    document = jobs.get(job.namespace, job.name)
    return _ranks(document, job, _pods(job, document))


def set_suspended(job: JobDescription, suspended: bool) -> None:
    jobs.set_suspended(job.namespace, job.name, suspended)
    remember(job, None)


def _ranks(document: Document, job: JobDescription, pods: list[Pod]) -> Ranks:
    noted = ranks_by_annotation(document)
    if noted is not None:
        return noted
    logs: dict[str, str] = {}
    for pod in workers(pods, job.name):
        index = worker_index(pod, job.name)
        log = if_known(lambda index=index: read_log(job.namespace, job.name, index, LOG_TO_EXPLAIN, document))
        logs[name_of(pod)] = log or ""
    return ranks_by_logs(document, logs)


def _warn_of_idle_workers(document: Document) -> None:
    ranks = ranks_by_annotation(document)
    if ranks is not None and is_worth_a_warning(document, ranks):
        name = text_at(document, "metadata", "name")
        warnings.warn(f"MPIJob {name} has ended well, but {ranks}; see explain()", RanksNotEverywhere, stacklevel=4)
