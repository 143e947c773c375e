"""One verdict and its fix, from conditions, events, pods, ends of containers and the launcher's last words."""

import pytest
from conftest import EVENTS, JOBS, PODS, a_pod, live, says

from openshift_ai_sdk.training.evidence import Evidence
from openshift_ai_sdk.training.explaining import explain
from openshift_ai_sdk.training.ranks import ranks_by_annotation, ranks_by_logs
from openshift_ai_sdk.training.statuses import judge_conditions, judge_events, judge_pods

CREATED, RUNNING = live(says("Created")), live(says("Running"))
FAILED, DONE = live(says("Failed", "BackoffLimitExceeded")), live(says("Succeeded"))
BOTH = [a_pod("train-worker-0"), a_pod("train-worker-1")]


def verdict(document, pods=(), events=(), log="", ranks=None):
    status = judge_conditions(document) or judge_events(document, list(events)) or judge_pods(document, list(pods))
    return explain(Evidence(document, status, list(pods), list(events), log, ranks))


def unschedulable(message):
    return [{"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": message}]


def about(name, reason, message, **more):
    return {"reason": reason, "message": message, "type": "Warning", "involvedObject": {"name": name}, **more}


def test_an_image_that_cannot_be_pulled():
    waiting = {"reason": "ErrImagePull", "message": "quay.io/x: not found"}
    found = verdict(CREATED, [a_pod("train-worker-0", "waiting", about=waiting)])
    assert found.cause == "ImagePull"
    assert "the image of train-worker-0 cannot be pulled (ErrImagePull)" in found.verdict
    assert found.evidence == ("quay.io/x: not found",)
    assert "pull secret" in found.fix


def test_a_quota_that_keeps_pods_out_as_long_as_they_are_out():
    said = 'pods "train-worker-1" is forbidden: exceeded quota: team, requested: pods=1, used: pods=2, limited: pods=2'
    events = [about("train", "FailedCreate", said)]
    found = verdict(CREATED, [a_pod(), BOTH[0]], events)
    assert (found.cause, found.evidence) == ("Quota", (said,))
    assert "quota exceeded" in found.verdict
    assert "train-worker-1" in found.verdict
    assert verdict(CREATED, [a_pod(), *BOTH], events).cause != "Quota"


def test_a_pod_that_no_node_takes_with_the_schedulers_own_words():
    ours = "node-a: no card has 24000 MiB free, the roomiest has 16384 MiB"
    found = verdict(CREATED, [a_pod("train-worker-0", "waiting", conditions=unschedulable(ours))])
    assert found.cause == "Unschedulable"
    assert ours in found.verdict


def test_a_container_that_was_out_of_memory():
    found = verdict(FAILED, [a_pod("train-worker-1", "terminated", exit=137, reason="OOMKilled")])
    assert found.cause == "OutOfMemory"
    assert "train-worker-1 was out of memory" in found.verdict
    assert "raise memory" in found.fix
    launcher = a_pod(state="terminated", exit=137, reason="OOMKilled")
    assert "let the ranks do the work" in verdict(FAILED, [launcher]).fix


@pytest.mark.parametrize(
    ("line", "cause"),
    [
        ("ssh: Could not resolve hostname train-worker-0.train.lab.svc: Name or service not known", "SshResolve"),
        ("ssh: connect to host train-worker-0 port 22: Connection refused", "SshConnect"),
        ("root@train-worker-0: Permission denied (publickey,keyboard-interactive).", "SshKey"),
        ("There are not enough slots available in the system to satisfy the 8", "NotEnoughSlots"),
        ("mpirun has detected an attempt to run as root.", "RunsAsRoot"),
        ("process rank 1 with PID 12 on node w exited on signal 9 (Killed).", "OutOfMemory"),
        ("train: NCCL WARN Connect to 10.0.0.1 failed", "Nccl"),
    ],
)
def test_the_launchers_last_words(line, cause):
    found = verdict(FAILED, [a_pod(state="terminated", exit=1)], log=f"starting\n{line}\nbye\n")
    assert (found.cause, found.evidence) == (cause, (line,))
    assert found.fix


@pytest.mark.parametrize(
    ("code", "words"), [(127, "not found"), (137, "killed"), (139, "SIGSEGV"), (143, "SIGTERM"), (3, "failed")]
)
def test_an_exit_code(code, words):
    found = verdict(FAILED, [a_pod(state="terminated", exit=code)], log="a\nb\nc\nlast\n")
    assert found.cause == "ExitCode"
    assert f"exit code {code}" in found.verdict
    assert words in found.verdict
    assert found.evidence[-1] == "last"


def test_a_command_that_is_not_there():
    launcher = a_pod(state="terminated", exit=128, reason="StartError")
    assert verdict(FAILED, [launcher]).cause == "StartError"
    assert "check command" in verdict(FAILED, [launcher]).fix


def test_open_mpi_5_on_one_host():
    document = live(says("Succeeded"), annotations={"tessera.io/ranks-ran-on": "{}"})
    launcher = document["spec"]["mpiReplicaSpecs"]["Launcher"]["template"]
    launcher["spec"] = {"containers": [{"command": ["mpirun", "-np", "2", "./train"]}]}
    found = verdict(document, ranks=ranks_by_annotation(document))
    assert found.cause == "RanksNotEverywhere"
    assert "ranks ran on 0 of 2 workers" in found.verdict
    assert "Open MPI 5" in found.verdict
    assert "PRTE_MCA_prte_default_hostfile" in found.fix


def test_a_job_that_runs_is_suspected_only_where_its_log_shows_open_mpi_5():
    document = live(says("Running"), annotations={"tessera.io/ranks-ran-on": "{}"})
    launcher = document["spec"]["mpiReplicaSpecs"]["Launcher"]["template"]
    launcher["spec"] = {"containers": [{"command": ["mpirun", "./train"]}]}
    ranks = ranks_by_annotation(document)
    assert verdict(document, ranks=ranks).cause == "Running"
    assert verdict(document, ranks=ranks, log="prterun noticed\n").cause == "RanksNotEverywhere"


def test_who_was_let_in_by_sshd_had_ranks_and_who_is_silent_is_unknown():
    listening = "Server listening on 0.0.0.0 port 22.\n"
    entered = listening + "Accepted publickey for root from 10.0.0.7 port 4242 ssh2: ECDSA SHA256:x\n"
    everywhere = ranks_by_logs(DONE, {"train-worker-0": entered, "train-worker-1": entered})
    partly = ranks_by_logs(DONE, {"train-worker-0": entered, "train-worker-1": listening})
    unknown = ranks_by_logs(DONE, {"train-worker-0": entered})
    assert [one.is_everywhere for one in (everywhere, partly, unknown)] == [True, False, None]
    assert partly.unused == ["train-worker-1"]
    assert verdict(DONE, ranks=partly).cause == "RanksNotEverywhere"
    assert verdict(DONE, ranks=unknown).cause == "Succeeded"


def suspended(**labels):
    return live(says("Suspended"), labels=labels)


@pytest.mark.parametrize(
    ("document", "events", "cause", "fix"),
    [
        (live(), [about("train", "ValidationError", "replicas: must be at least 1")], "Invalid", "correct"),
        (live(), [about("train", "ErrResourceExists", "train-worker-0 exists")], "ResourceExists", "another name"),
        (CREATED, [about("train", "ErrResourceExists", "train-worker-0 exists")], "ResourceExists", "another name"),
        (live(), [], "NoController", "MPI operator"),
        (live(says("Failed", "MPIJobEvicted", "1/2 workers are evicted")), [], "Evicted", "ran out of"),
        (live(says("Failed", "DeadlineExceeded")), [], "DeadlineExceeded", "raise it"),
        (suspended(), [], "Suspended", "resume()"),
        (suspended(**{"kueue.x-k8s.io/queue-name": "gpus"}), [], "Suspended", "from the queue gpus"),
        (RUNNING, [], "Running", "wait_for_completion"),
        (DONE, [], "Succeeded", "nothing"),
        (FAILED, [], "Failed", "create it again"),
        (CREATED, [], "Starting", "wait"),
    ],
)
def test_what_the_job_says_of_itself(document, events, cause, fix):
    found = verdict(document, events=events)
    assert found.cause == cause
    assert fix in found.fix


def test_a_volume_that_cannot_be_mounted_and_a_secret_that_is_missing():
    waiting = a_pod("train-worker-0", "waiting", about={"reason": "ContainerCreating"})
    mount = about("train-worker-0", "FailedMount", 'persistentvolumeclaim "data" not found')
    assert verdict(CREATED, [waiting], [mount]).cause == "Volume"
    config = {"reason": "CreateContainerConfigError", "message": 'secret "s" not found'}
    assert verdict(CREATED, [a_pod(state="waiting", about=config)]).evidence == ('secret "s" not found',)


def test_a_worker_that_failed_is_named():
    assert "train-worker-0 failed" in verdict(FAILED, [a_pod("train-worker-0", "terminated", exit=2)]).verdict


def test_a_verdict_reads_well_and_is_escaped_in_a_notebook():
    found = verdict(FAILED, [a_pod(state="terminated", exit=3)], log="<script>alert(1)</script>\n")
    assert str(found).splitlines()[0].startswith("ExitCode: the launcher ended with exit code 3")
    assert "  fix: " in str(found)
    assert "<script>" not in found._repr_html_()
    assert "&lt;script&gt;" in found._repr_html_()


def test_everything_is_asked_for_once(server, job):
    server.on("GET", f"{JOBS}/train", FAILED)
    server.on("GET", PODS, {"items": [a_pod(state="terminated", exit=1)]})
    server.on("GET", f"{PODS}/train-launcher-x/log", "There are not enough slots available\n")
    server.on("GET", EVENTS, {"items": []})
    assert job.explain().cause == "NotEnoughSlots"
    assert len(server.asked("GET", f"{JOBS}/train")) == 1
    assert len(server.asked("GET", EVENTS)) == 1


def test_what_may_not_be_read_does_not_keep_the_rest_from_being_explained(server, job):
    server.on("GET", f"{JOBS}/train", FAILED)
    server.on("GET", PODS, {"items": [a_pod(state="terminated", exit=127)]})
    assert "exit code 127" in job.explain().verdict


def test_a_gpu_that_is_full_is_not_a_worker_that_is_out_of_memory():
    log = "torch.cuda.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB"
    assert verdict(FAILED, [a_pod(state="terminated", exit=1)], log=log).cause == "GpuOutOfMemory"


def test_a_warning_of_nccl_is_no_reason_while_the_job_runs():
    log = "worker-0:12:40 [0] NCCL WARN Could not enable P2P between dev 0 and dev 1"
    assert verdict(RUNNING, [a_pod(), *BOTH], log=log).cause == "Running"
    assert verdict(FAILED, [a_pod(state="terminated", exit=1), *BOTH], log=log).cause == "Nccl"


def test_a_name_that_was_taken_for_a_moment_is_not_the_reason_any_more():
    events = [about("train", "ErrResourceExists", "train-worker-0 exists")]
    waiting = a_pod("train-worker-0", "waiting", conditions=unschedulable("no card is free"))
    assert verdict(CREATED, [a_pod(), waiting, BOTH[1]], events).cause == "Unschedulable"


def test_what_befell_an_earlier_job_of_the_same_name_is_not_the_reason(server, job):
    server.on("GET", f"{JOBS}/train", live(says("Created"), creationTimestamp="2026-01-01T00:01:00Z"))
    old, new = "2026-01-01T00:00:30Z", "2026-01-01T00:01:00.5Z"
    said = 'pods "train-worker-1" is forbidden: exceeded quota: team'
    launcher = a_pod(state="terminated", exit=137, reason="OOMKilled", created=old)
    worker = a_pod("train-worker-0", "waiting", about={"reason": "ContainerCreating"}, created="2026-01-01T00:01:00Z")
    events = [
        left_by("MPIJob", "train", said, new),
        left_by("Job", "train-launcher", said, old),
        left_by("Pod", "train-worker-0", "no such claim", old, reason="FailedMount"),
    ]
    server.on("GET", PODS, {"items": [launcher, worker]})
    server.on("GET", EVENTS, {"items": events})
    assert job.explain().cause == "Starting"
    events[1]["lastTimestamp"] = new
    assert job.explain().cause == "Quota"


def left_by(kind, name, message, when, reason="FailedCreate"):
    """An event about an object that has another UID than what bears its name now."""
    involved = {"kind": kind, "name": name, "uid": "earlier"}
    return about(name, reason, message, lastTimestamp=when, involvedObject=involved)


SCC = "unable to validate against any security context constraint"


def test_workers_that_the_api_server_refuses_are_told_in_its_words():
    events = [about("train", "MPIJobFailed", f"worker pod created failed: {SCC}")]
    found = verdict(live(), [], events)
    assert found.cause == "PodRefused"
    assert "refuses train-worker-0" in found.verdict
    assert found.evidence == (f"worker pod created failed: {SCC}",)
    assert verdict(CREATED, [*BOTH], events).cause == "Starting"


def test_a_launcher_that_the_api_server_refuses_is_told_in_its_words():
    events = [about("train-launcher", "FailedCreate", f"Error creating: {SCC}")]
    found = verdict(CREATED, BOTH, events)
    assert (found.cause, found.evidence) == ("PodRefused", (f"Error creating: {SCC}",))
    assert "refuses train-launcher" in found.verdict
    assert verdict(CREATED, [a_pod()], events).cause == "Starting"
