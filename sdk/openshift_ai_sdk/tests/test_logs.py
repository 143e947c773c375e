"""Logs: of the right pod, and followed over everything that may happen to it, no line lost and none twice."""

import threading

import pytest
from api_server import Failure, Stream
from conftest import JOBS, PODS, a_pod, live, says
from kubernetes.client.exceptions import ApiException

from openshift_ai_sdk.training import MPIJob, NoSuchWorker, following

JOB, LOG = f"{JOBS}/train", f"{PODS}/train-launcher-x/log"
RUNNING, DONE = live(says("Running")), live(says("Succeeded"))


def stamped(second: int, *texts: str, fraction: str = "5", zone: str = "Z", end: str = "\n") -> bytes:
    return "".join(f"2026-01-01T00:00:{second:02}.{fraction}{zone} {text}{end}" for text in texts).encode()


def pods(*those):
    return {"items": list(those)}


@pytest.fixture(autouse=True)
def no_patience(monkeypatch):
    monkeypatch.setattr(following, "LOOK_S", 0.02)
    monkeypatch.setattr(following, "LONGEST_LOOK_S", 0.05)


def test_the_launcher_is_found_by_its_labels_and_the_newest_is_read(server, job):
    older = a_pod("train-launcher-z", created="2025-01-01T00:00:00Z")
    server.on("GET", PODS, pods(a_pod(), older))
    server.on("GET", LOG, "hello\n")
    assert job.get_logs() == "hello\n"
    selector = "training.kubeflow.org/job-name=train,training.kubeflow.org/job-role=launcher"
    assert server.asked("GET", PODS)[0].query == {"labelSelector": selector}
    assert server.asked("GET", LOG)[0].query == {"container": "mpi", "tailLines": "1000"}


def test_a_worker_is_found_by_its_name_and_all_of_its_log_can_be_asked_for(server, job):
    server.on("GET", PODS, pods(a_pod("train-worker-1")))
    server.on("GET", f"{PODS}/train-worker-1/log", "one")
    assert job.get_logs(worker_index=1, tail_lines=None) == "one"
    assert server.asked("GET", PODS)[0].query["fieldSelector"] == "metadata.name=train-worker-1"
    assert "tailLines" not in server.asked("GET", f"{PODS}/train-worker-1/log")[0].query


@pytest.mark.parametrize("index", [2, -1, 100, True, "0"])
@pytest.mark.parametrize("follow", [False, True])
def test_a_worker_that_the_job_does_not_have_is_a_clear_error(job, index, follow):
    with pytest.raises(NoSuchWorker, match=r"worker_index is .*, expected a whole number from 0 to 1") as caught:
        job.get_logs(worker_index=index, follow=follow)
    assert isinstance(caught.value, ValueError)
    assert isinstance(caught.value, ApiException)
    assert caught.value.status == 404


@pytest.mark.parametrize("tail", [-1, "10", 1.5])
def test_a_tail_that_is_no_number_of_lines_is_refused(job, tail):
    with pytest.raises(ValueError, match="tail_lines is"):
        job.get_logs(tail_lines=tail)


@pytest.mark.parametrize("worker", [None, 1])
@pytest.mark.usefixtures("server")
def test_a_pod_that_is_not_there_is_a_clear_error(job, worker):
    with pytest.raises(ApiException, match="it is not there yet, or it went with its log") as caught:
        job.get_logs(worker_index=worker)
    assert caught.value.status == 404


def test_a_container_that_has_not_started_is_told_by_the_server(server, job):
    server.on("GET", PODS, pods(a_pod(state="waiting")))
    server.on("GET", LOG, Failure(400, 'container "mpi" in pod "train-launcher-x" is waiting to start'))
    with pytest.raises(ApiException, match="waiting to start") as caught:
        job.get_logs()
    assert caught.value.status == 400


def test_following_waits_for_the_pod_and_ends_with_the_job(server, job):
    server.on("GET", JOB, live(says("Created")), live(says("Created")), RUNNING, DONE)
    server.on("GET", PODS, pods(), pods(a_pod(state="waiting")), pods(a_pod()), pods(a_pod(state="terminated")))
    server.on("GET", LOG, Stream((stamped(1, "a"), stamped(2, "b"))), Stream((stamped(2, "b"),)))
    assert list(job.get_logs(follow=True)) == ["a\n", "b\n"]
    assert server.asked("GET", LOG)[0].query == {"container": "mpi", "timestamps": "true", "follow": "true"}


def test_what_was_there_before_is_cut_to_the_tail_and_what_comes_is_not(server, job):
    server.on("GET", JOB, RUNNING, DONE)
    server.on("GET", PODS, pods(a_pod()), pods(a_pod(state="terminated")))
    server.on("GET", LOG, Stream((stamped(1, "a"),)), Stream(()))
    assert list(job.get_logs(follow=True, tail_lines=5)) == ["a\n"]
    first, *others = server.asked("GET", LOG)
    assert first.query["tailLines"] == "5"
    assert all("tailLines" not in one.query and one.query["sinceTime"] == "2026-01-01T00:00:01Z" for one in others)


def test_no_line_is_lost_or_doubled_over_broken_connections(server, job):
    server.on("GET", JOB, RUNNING)
    server.on("GET", PODS, pods(a_pod()), pods(a_pod()), pods(a_pod()), pods(a_pod(state="terminated")))
    server.on(
        "GET",
        LOG,
        Stream((stamped(1, "a", "same"), stamped(2, "same", "same"), stamped(2, "cut sho", end="")), broken=True),
        Stream((stamped(2, "same", "same", "cut short", "same", fraction="50"),), broken=True),
        Failure(503, "restarting"),
        Stream((stamped(2, "same", "same", "cut short", "same"), stamped(3, "b"))),
    )
    lines = job.get_logs(follow=True)
    wanted = ["a\n", "same\n", "same\n", "same\n", "cut short\n", "same\n", "b\n"]
    assert [next(lines) for _ in wanted] == wanted
    server.on("GET", JOB, DONE)
    assert list(lines) == []


def test_a_restarted_container_has_its_earlier_log_read_first(server, job):
    server.on("GET", JOB, RUNNING, RUNNING, DONE)
    first, second = a_pod(restart_policy="OnFailure"), a_pod(restarts=1, restart_policy="OnFailure")
    server.on("GET", PODS, pods(first), pods(second), pods(a_pod(state="terminated", restarts=1)))

    def log(request):
        asked = [one for one in server.asked("GET", LOG) if "previous" in one.query]
        if "previous" in request.query:
            return Failure(400, "not found") if len(asked) == 1 else Stream((stamped(1, "a"), stamped(2, "died")))
        asked = [one for one in server.asked("GET", LOG) if "previous" not in one.query]
        return Stream((stamped(1, "a"),)) if len(asked) == 1 else Stream((stamped(3, "again"),))

    server.on("GET", LOG, log)
    assert list(job.get_logs(follow=True)) == ["a\n", "died\n", "again\n"]


@pytest.mark.parametrize("previous_s", [1, 2])
def test_a_container_that_is_restarted_while_its_log_is_opened_has_its_earlier_log_read_first(server, job, previous_s):
    server.on("GET", JOB, RUNNING, RUNNING, DONE)
    pod, ended = a_pod(restart_policy="OnFailure"), a_pod(state="terminated", restarts=1, restart_policy="OnFailure")
    server.on("GET", PODS, pods(pod), pods(ended))
    earlier, later = Stream((stamped(previous_s, "a"),)), Stream((stamped(2, "b"),))
    server.on("GET", LOG, lambda request: earlier if "previous" in request.query else later)
    assert list(job.get_logs(follow=True, tail_lines=None)) == ["a\n", "b\n"]


def test_of_a_tail_nothing_earlier_is_given(server, job):
    server.on("GET", JOB, RUNNING, RUNNING, DONE)
    pod, ended = a_pod(restart_policy="OnFailure"), a_pod(state="terminated", restarts=1, restart_policy="OnFailure")
    server.on("GET", PODS, pods(pod), pods(ended))
    earlier, later = Stream((stamped(1, "a"),)), Stream((stamped(2, "b"),))
    server.on("GET", LOG, lambda request: earlier if "previous" in request.query else later)
    assert list(job.get_logs(follow=True, tail_lines=3)) == ["b\n"]


def test_what_a_kubelet_says_in_the_place_of_a_log_is_no_line_of_it(server, job):
    server.on("GET", JOB, RUNNING, RUNNING, DONE)
    server.on("GET", PODS, pods(a_pod()), pods(a_pod()), pods(a_pod(state="terminated")))
    notice = b"unable to retrieve container logs for containerd://93f2"
    server.on("GET", LOG, Stream((notice,)), Stream((stamped(1, notice.decode()), b"unstamped\n")), Stream(()))
    assert list(job.get_logs(follow=True)) == [f"{notice.decode()}\n", "unstamped\n"]


def test_a_new_attempt_of_the_launcher_is_followed_in_its_turn(server, job):
    failed = a_pod("train-launcher-x", "terminated", exit=1)
    second = a_pod("train-launcher-y", created="2026-01-01T00:01:00Z")
    ended = a_pod("train-launcher-y", "terminated", created="2026-01-01T00:01:00Z")
    server.on("GET", JOB, *[RUNNING] * 6, DONE)
    server.on("GET", PODS, pods(a_pod()), pods(failed), pods(failed), pods(second, failed), pods(ended, failed))
    server.on("GET", LOG, Stream((stamped(1, "first"),)))
    server.on("GET", f"{PODS}/train-launcher-y/log", Stream((stamped(9, "second"),)))
    assert list(job.get_logs(follow=True)) == ["first\n", "second\n"]
    assert "tailLines" in server.asked("GET", LOG)[0].query
    assert "tailLines" not in server.asked("GET", f"{PODS}/train-launcher-y/log")[0].query


def test_of_earlier_attempts_nothing_is_shown(server, job):
    earlier = a_pod("train-launcher-w", "terminated", created="2025-01-01T00:00:00Z", exit=1)
    server.on("GET", JOB, DONE)
    server.on("GET", PODS, pods(earlier, a_pod(state="terminated")))
    server.on("GET", f"{PODS}/train-launcher-w/log", Stream((stamped(1, "earlier"),)))
    server.on("GET", LOG, Stream((stamped(1, "last"),)))
    assert list(job.get_logs(follow=True)) == ["last\n"]


def test_a_last_line_without_an_end_is_given_when_nothing_more_can_come(server, job):
    server.on("GET", JOB, RUNNING, DONE)
    server.on("GET", PODS, pods(a_pod()), pods(a_pod(state="terminated")))
    server.on("GET", LOG, Stream((stamped(1, "a"), stamped(2, "no end", end=""))))
    assert list(job.get_logs(follow=True)) == ["a\n", "no end"]


def test_stamps_of_another_zone_are_put_in_order(server, job):
    server.on("GET", JOB, RUNNING, DONE)
    server.on("GET", PODS, pods(a_pod()), pods(a_pod(state="terminated")))
    server.on("GET", LOG, Stream((stamped(1, "a", zone="+02:00"),)))
    assert list(job.get_logs(follow=True)) == ["a\n"]
    assert server.asked("GET", LOG)[-1].query["sinceTime"] == "2025-12-31T22:00:01Z"


def test_a_job_that_is_deleted_ends_the_log(server, job):
    server.on("GET", JOB, RUNNING, Failure(404, "not found", "train"))
    server.on("GET", PODS, pods(a_pod()), pods())
    server.on("GET", LOG, Stream((stamped(1, "a"),)))
    assert list(job.get_logs(follow=True)) == ["a\n"]


def test_a_job_that_never_was_cannot_be_followed(server, job):
    server.on("GET", JOB, Failure(404, 'mpijobs.kubeflow.org "train" not found', "train"))
    with pytest.raises(ApiException, match="not found"):
        next(job.get_logs(follow=True))


def test_a_job_whose_log_is_gone_says_so(server, job):
    server.on("GET", JOB, DONE)
    with pytest.raises(ApiException, match="it went with its log"):
        next(job.get_logs(follow=True))


def test_who_may_not_read_logs_is_told(server, job):
    server.on("GET", JOB, RUNNING)
    server.on("GET", PODS, pods(a_pod()))
    server.on("GET", LOG, Failure(403, "pods/log is forbidden"))
    with pytest.raises(ApiException, match="pods/log is forbidden"):
        next(job.get_logs(follow=True))


def test_lines_come_while_the_log_goes_on(server, job):
    goes_on = threading.Event()
    server.on("GET", JOB, RUNNING)
    server.on("GET", PODS, pods(a_pod()))
    server.on("GET", LOG, Stream((stamped(1, "a"),), until=goes_on))
    lines = job.get_logs(follow=True)
    assert next(lines) == "a\n"
    assert not goes_on.is_set()
    lines.close()


def test_workers_are_told_in_order_with_times(server, job):
    ready = [{"type": "Ready", "status": "True"}]
    late = a_pod("train-worker-1", "waiting")
    late["status"].pop("startTime")
    late["spec"].pop("nodeName")
    server.on("GET", PODS, pods(late, a_pod(), a_pod("train-worker-0", conditions=ready)))
    first, second = job.get_worker_statuses()
    assert (first["index"], first["name"], first["phase"], first["node"], first["ready"]) == (
        (0, "train-worker-0", "Running", "node-a", True)
    )
    assert first["start_time"].isoformat() == "2026-01-01T00:00:01+00:00"
    assert (second["phase"], second["node"], second["ready"], second["start_time"]) == ("Pending", None, False, None)


def test_no_job_is_not_the_same_as_no_workers(server, job):
    server.on("GET", JOB, live())
    assert job.get_worker_statuses() == []
    server.on("GET", JOB, Failure(404, "not found", "train"))
    with pytest.raises(ApiException):
        MPIJob("train", "lab", image="mpi").get_worker_statuses()


def test_lines_before_the_tail_do_not_come_after_it_when_the_connection_is_renewed(server, job):
    server.on("GET", JOB, RUNNING, RUNNING, DONE)
    server.on("GET", PODS, pods(a_pod()), pods(a_pod()), pods(a_pod(state="terminated")))
    whole = (stamped(1, "early", fraction="1"), stamped(1, "a", "b", "c"))
    server.on("GET", LOG, Stream((stamped(1, "b", "c"),)), Stream((*whole, stamped(1, "d"))))
    assert list(job.get_logs(follow=True, tail_lines=2)) == ["b\n", "c\n", "d\n"]


def test_who_wants_no_tail_misses_nothing_that_comes_while_the_connection_is_renewed(server, job):
    server.on("GET", JOB, RUNNING, RUNNING, DONE)
    server.on("GET", PODS, pods(a_pod()), pods(a_pod()), pods(a_pod(state="terminated")))
    old = stamped(1, "a", "old")
    server.on("GET", LOG, Stream((stamped(1, "old"),)), Stream((old,), broken=True), Stream((old, stamped(2, "new"))))
    assert list(job.get_logs(follow=True, tail_lines=0)) == ["new\n"]
    first, *others = [one.query for one in server.asked("GET", LOG)]
    assert first["tailLines"] == "1"
    assert all("tailLines" not in one for one in others)


def test_a_worker_that_outlives_the_job_does_not_hold_up_its_log(server, job):
    server.on("GET", JOB, RUNNING, DONE)
    server.on("GET", PODS, pods(a_pod("train-worker-0")))
    server.on("GET", f"{PODS}/train-worker-0/log", Stream((stamped(1, "a"),)), Stream((stamped(1, "a", "b"),)))
    assert list(job.get_logs(worker_index=0, follow=True)) == ["a\n", "b\n"]
    assert "follow" not in server.asked("GET", f"{PODS}/train-worker-0/log")[-1].query


def test_a_container_that_was_restarted_before_it_was_seen_has_its_earlier_log_read_too(server, job):
    server.on("GET", JOB, RUNNING, DONE)
    server.on("GET", PODS, pods(), pods(a_pod(state="terminated", restarts=1)))
    earlier, later = Stream((stamped(1, "a"),)), Stream((stamped(1, "b"),))
    server.on("GET", LOG, lambda request: earlier if "previous" in request.query else later)
    assert list(job.get_logs(follow=True)) == ["a\n", "b\n"]


OLD, NEW = "2026-01-01T00:00:00Z", "2026-01-01T00:01:00Z"


def going(pod):
    return {**pod, "metadata": {**pod["metadata"], "deletionTimestamp": NEW}}


def test_what_an_earlier_job_of_the_same_name_wrote_is_not_given(server, job):
    left, own = going(a_pod("train-launcher-old", created=OLD)), a_pod(created=NEW)
    server.on("GET", JOB, live(says("Created"), creationTimestamp=NEW), live(says("Succeeded"), creationTimestamp=NEW))
    server.on("GET", PODS, pods(left), pods(left, own), pods(left, a_pod(state="terminated", created=NEW)))
    server.on("GET", f"{PODS}/train-launcher-old/log", Stream((stamped(1, "old"),)))
    server.on("GET", LOG, Stream((stamped(1, "new"),)), Stream(()))
    assert list(job.get_logs(follow=True)) == ["new\n"]


def test_a_later_job_of_the_same_name_is_not_followed(server, job):
    server.on("GET", JOB, RUNNING, live(says("Running"), uid="u2"))
    server.on("GET", PODS, pods(a_pod()), pods(a_pod("train-launcher-later")))
    server.on("GET", LOG, Stream((stamped(1, "mine"),)))
    server.on("GET", f"{PODS}/train-launcher-later/log", Stream((stamped(1, "another's"),)))
    assert list(job.get_logs(follow=True)) == ["mine\n"]


def test_a_log_that_an_earlier_job_left_behind_is_not_this_jobs(server, job):
    server.on("GET", JOB, live(says("Created"), creationTimestamp=NEW))
    server.on("GET", PODS, pods(going(a_pod(created=OLD))))
    server.on("GET", LOG, "old\n")
    with pytest.raises(ApiException, match="has no launcher pod"):
        job.get_logs()
    server.on("GET", JOB, live(says("Suspended"), creationTimestamp=OLD))
    assert job.get_logs() == "old\n"


def test_workers_of_an_earlier_job_are_not_this_jobs(server, job):
    server.on("GET", JOB, live(says("Created"), creationTimestamp=NEW))
    left, own = going(a_pod("train-worker-0", created=OLD)), a_pod("train-worker-1", created=NEW)
    server.on("GET", PODS, pods(left, own))
    assert [one["index"] for one in job.get_worker_statuses()] == [1]
    for pod, owner in ((left, "u1"), (own, "u0")):
        pod["metadata"]["ownerReferences"] = [{"kind": "MPIJob", "name": "train", "uid": owner}]
    assert [one["index"] for one in job.get_worker_statuses()] == [0]


def test_a_job_that_was_just_created_does_not_take_the_log_of_an_earlier_one_for_its_own(server, job):
    """Its pods are not even marked as going at first."""
    server.on("POST", JOBS, live(creationTimestamp=NEW))
    server.on("GET", PODS, pods(a_pod(created=OLD), a_pod("train-worker-0", created=OLD)))
    server.on("GET", JOB, live(creationTimestamp=NEW))
    job.create()
    with pytest.raises(ApiException, match="has no launcher pod"):
        job.get_logs()
    assert job.get_worker_statuses() == []


def test_a_job_that_somebody_created_anew_is_known_by_its_old_description_too(server, job):
    server.on("POST", JOBS, live(creationTimestamp=OLD))
    worker = a_pod("train-worker-0", created=NEW)
    worker["metadata"]["ownerReferences"] = [{"kind": "MPIJob", "name": "train", "uid": "u2"}]
    server.on("GET", PODS, pods(worker))
    assert [one["index"] for one in job.create().get_worker_statuses()] == [0]


def test_what_is_remembered_of_one_job_is_not_believed_of_another(server, job):
    server.on("POST", JOBS, live(creationTimestamp=NEW))
    server.on("GET", PODS, pods(a_pod("older-launcher-x", created=OLD)))
    server.on("GET", f"{PODS}/older-launcher-x/log", "old\n")
    job.create()
    job.name = "older"
    assert job.get_logs() == "old\n"
