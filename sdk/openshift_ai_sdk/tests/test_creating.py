"""Creating a job: refused before it is sent where it would never run, and sent once where it would."""

import json
from typing import Any
from unittest.mock import Mock

import pytest
from api_server import Failure
from conftest import JOBS, live, says
from kubernetes import client, config
from kubernetes.client.exceptions import ApiException

from openshift_ai_sdk.training import MPIJob, ResourceRequirements
from openshift_ai_sdk.training.preflight import problems_with

QUOTAS, RANGES = "/api/v1/namespaces/lab/resourcequotas", "/api/v1/namespaces/lab/limitranges"


def a_quota(hard, used=None, **spec):
    return {"items": [{"metadata": {"name": "team"}, "spec": spec, "status": {"hard": hard, "used": used or {}}}]}


@pytest.fixture
def gpu_job():
    return MPIJob("train", "lab", workers=4, image="mpi", resources=ResourceRequirements(cpu=8, memory="64Gi", gpu=2))


@pytest.fixture
def accepting(server):
    server.on("POST", JOBS, lambda request: request.body)
    return server


def refusal(job) -> Any:
    with pytest.raises(ApiException) as caught:
        job.create()
    return caught.value


def test_what_is_sent_is_what_was_described_and_the_job_is_given_back(accepting, gpu_job):
    assert gpu_job.create() is gpu_job
    (sent,) = accepting.asked("POST", JOBS)
    assert sent.body == gpu_job.to_dict()
    assert sent.headers["authorization"] == "Bearer sesame"


def test_a_dry_run_is_the_servers(accepting, gpu_job):
    gpu_job.create(dry_run=True)
    assert accepting.asked("POST", JOBS)[0].query == {"dryRun": "All"}


@pytest.mark.parametrize(
    ("name", "workers", "sentence"),
    [
        ("a" * 55, 10, "with 55 characters, expected at most 54: the last worker's pod is called 'a+-worker-9'"),
        ("a" * 54, 11, "with 54 characters, expected at most 53"),
        ("team.train", 2, "where dots and a leading digit are not allowed"),
        ("7-train", 2, "where dots and a leading digit are not allowed"),
    ],
)
def test_a_name_that_the_operator_refuses_is_refused_before_anything_is_sent(accepting, name, workers, sentence):
    with pytest.raises(ValueError, match=sentence):
        MPIJob(name, "lab", workers=workers, image="mpi").create()
    assert accepting.requests == []


@pytest.mark.parametrize(("length", "workers"), [(54, 10), (53, 11), (53, 100)])
def test_the_longest_names_that_the_operator_takes_are_sent(accepting, length, workers):
    MPIJob("a" * length, "lab", workers=workers, image="mpi").create()
    assert len(accepting.asked("POST", JOBS)) == 1


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        ({"image": None}, "image of the Launcher is missing"),
        (
            {"volume_mounts": [{"name": "data", "mountPath": "/data"}]},
            "name the volume 'data', expected one of volumes",
        ),
        ({"volumes": [{"name": "ssh-auth", "emptyDir": {}}]}, "'ssh-auth', which is the operator's own"),
    ],
)
def test_what_could_never_run_is_refused_before_anything_is_sent(accepting, settings, sentence):
    with pytest.raises(ValueError, match=sentence):
        MPIJob(**{"name": "train", "namespace": "lab", "image": "mpi", **settings}).create()
    assert accepting.requests == []


def test_more_gpus_than_the_quota_has_left_are_refused_in_the_words_of_the_contract(accepting, gpu_job):
    accepting.on("GET", QUOTAS, a_quota({"requests.nvidia.com/gpu": "10"}, {"requests.nvidia.com/gpu": "4"}))
    error = refusal(gpu_job)
    assert error.status == 422
    assert "quota exceeded" in str(error).lower()
    assert "requests.nvidia.com/gpu: 8 needed, 6 left (4 of 10 used, quota team)" in json.loads(error.body)["message"]
    assert accepting.asked("POST", JOBS) == []


@pytest.mark.parametrize(
    ("hard", "needed"),
    [
        ({"pods": "4"}, "pods: 5 needed, 4 left"),
        ({"count/pods": "4"}, "count/pods: 5 needed"),
        ({"requests.cpu": "32"}, "requests.cpu: 33 needed"),
        ({"cpu": "32900m"}, "cpu: 33 needed, 32900m left"),
        ({"limits.memory": "259Gi"}, "limits.memory: 260Gi needed, 259Gi left"),
        ({"memory": "1"}, "memory: 260Gi needed"),
        ({"count/mpijobs.kubeflow.org": "0"}, "count/mpijobs.kubeflow.org: 1 needed, 0 left"),
        ({"count/jobs.batch": "0"}, "count/jobs.batch: 1 needed"),
        ({"services": "0"}, "services: 1 needed"),
    ],
)
def test_launcher_and_workers_count_together(accepting, gpu_job, hard, needed):
    accepting.on("GET", QUOTAS, a_quota(hard))
    assert needed in json.loads(refusal(gpu_job).body)["message"]


@pytest.mark.parametrize(
    "hard",
    [
        {"pods": "5", "requests.cpu": "33", "limits.memory": "260Gi", "requests.nvidia.com/gpu": "8"},
        {"requests.amd.com/gpu": "0", "persistentvolumeclaims": "0", "nonsense": "x"},
    ],
)
def test_a_quota_that_has_room_or_is_about_something_else_lets_the_job_through(accepting, gpu_job, hard):
    accepting.on("GET", QUOTAS, a_quota(hard))
    gpu_job.create()


@pytest.mark.parametrize(
    ("spec", "counts"),
    [
        ({"scopes": ["BestEffort"]}, False),
        ({"scopes": ["NotBestEffort"]}, True),
        ({"scopes": ["Terminating"]}, False),
        ({"scopes": ["NotTerminating"]}, True),
        (
            {
                "scopeSelector": {
                    "matchExpressions": [{"scopeName": "PriorityClass", "operator": "In", "values": ["x"]}]
                }
            },
            False,
        ),
        ({"scopeSelector": {"matchExpressions": [{"scopeName": "PriorityClass", "operator": "DoesNotExist"}]}}, True),
    ],
)
def test_a_quota_counts_pods_of_its_scope_only(accepting, gpu_job, spec, counts):
    accepting.on("GET", QUOTAS, a_quota({"pods": "1"}, **spec))
    if counts:
        assert "pods: 5 needed" in refusal(gpu_job).body
    else:
        gpu_job.create()


def test_pods_that_do_not_say_what_a_quota_counts_are_told_so(accepting, job):
    accepting.on("GET", QUOTAS, a_quota({"requests.cpu": "100"}))
    assert "the launcher does not say how much it needs" in refusal(job).body


def test_what_containers_get_by_default_counts(accepting, job):
    accepting.on("GET", QUOTAS, a_quota({"requests.cpu": "5"}))
    limits = [{"type": "Container", "default": {"cpu": "2"}, "defaultRequest": {"cpu": "1"}}]
    accepting.on("GET", RANGES, {"items": [{"spec": {"limits": limits}}]})
    job.create()
    limits[0]["defaultRequest"] = {"cpu": "2"}
    assert "requests.cpu: 6 needed, 5 left" in refusal(job).body


def test_a_suspended_job_is_not_held_up_by_a_quota_on_pods(accepting, gpu_job):
    accepting.on("GET", QUOTAS, a_quota({"pods": "0"}))
    document = gpu_job.to_dict()
    document["spec"]["runPolicy"]["suspend"] = True
    MPIJob._from_document(document).create()


def test_where_quotas_may_not_be_read_nobody_is_held_up(accepting, gpu_job):
    accepting.on("GET", QUOTAS, Failure(403, "resourcequotas is forbidden"))
    gpu_job.create()


def test_where_defaults_may_not_be_read_the_quota_counts_all_the_same(accepting, gpu_job):
    accepting.on("GET", QUOTAS, a_quota({"pods": "1"}))
    accepting.on("GET", RANGES, Failure(404, "404 page not found", plain=True))
    assert "pods: 5 needed" in refusal(gpu_job).body


def test_a_quota_that_the_server_itself_applies_is_told_in_the_same_words(server, gpu_job):
    said = 'mpijobs.kubeflow.org "train" is forbidden: exceeded quota: team, requested: count/mpijobs.kubeflow.org=1'
    server.on("POST", JOBS, Failure(403, said, "train"))
    error = refusal(gpu_job)
    assert error.status == 422
    assert "quota exceeded" in str(error).lower()
    assert said in json.loads(error.body)["message"]


@pytest.mark.parametrize(
    ("status", "said"),
    [(403, "mpijobs is forbidden"), (409, "already exists"), (422, "is invalid"), (500, "out of order")],
)
def test_what_the_server_answers_arrives_with_status_and_body(server, gpu_job, status, said):
    server.on("POST", JOBS, Failure(status, said, "train"))
    error = refusal(gpu_job)
    assert error.status == status
    assert json.loads(error.body)["message"] == said
    assert len(server.asked("POST", JOBS)) == 1


@pytest.mark.usefixtures("server")
def test_a_cluster_without_mpijobs_is_told_in_a_sentence(gpu_job):
    error = refusal(gpu_job)
    assert error.status == 404
    assert "the cluster serves no MPIJobs (kubeflow.org/v2beta1); install the MPI operator" in str(error)


def test_a_cluster_with_the_older_mpijobs_is_told_in_a_sentence(server, gpu_job):
    server.on("GET", "/apis/kubeflow.org", {"versions": [{"version": "v1"}]})
    server.on("GET", "/apis/kubeflow.org/v1", {"resources": [{"name": "mpijobs"}]})
    error = refusal(gpu_job)
    assert error.status == 404
    assert "serves MPIJobs of kubeflow.org/v1 only, expected v2beta1" in str(error)


def test_without_any_cluster_it_is_said_what_was_looked_for(gpu_job):
    error = refusal(gpu_job)
    assert "no cluster to talk to: the kubeconfig cannot be used" in str(error)
    assert "set KUBECONFIG" in str(error)


def test_a_server_that_is_gone_is_named(server, gpu_job, monkeypatch, tmp_path):
    text = (tmp_path / "kubeconfig").read_text().replace(server.url, "http://127.0.0.1:1")
    (tmp_path / "gone").write_text(text)
    monkeypatch.setenv("KUBECONFIG", str(tmp_path / "gone"))
    assert "http://127.0.0.1:1 does not answer as an API server does" in str(refusal(gpu_job))


def test_a_server_that_answers_something_else_is_no_api_server(server, job):
    server.on("PATCH", f"{JOBS}/train", "<html>")
    with pytest.raises(ApiException, match="does not answer as an API server does"):
        job.suspend()


@pytest.mark.parametrize(("replicas", "is_sent"), [(0, False), (None, False), (1, True)])
def test_a_foreign_job_without_workers_is_refused_where_the_operator_would(accepting, replicas, is_sent):
    document = MPIJob("train", "lab", image="mpi").to_dict()
    document["spec"]["mpiReplicaSpecs"]["Worker"]["replicas"] = replicas
    job = MPIJob._from_document(document)
    if is_sent:
        job.create()
    else:
        with pytest.raises(ValueError, match=f"Worker has {replicas} replicas, expected at least 1"):
            job.create()
    assert len(accepting.asked("POST", JOBS)) == is_sent


def test_jobs_are_got_listed_deleted_suspended_and_resumed(server, job):
    server.on("GET", f"{JOBS}/train", live(says("Running")))
    server.on("GET", JOBS, {"items": [live(says("Running")), {"metadata": None}, live(name="other")]})
    server.on("DELETE", f"{JOBS}/train", {"status": "Success"})
    server.on("PATCH", f"{JOBS}/train", live())
    assert (MPIJob.get("train", "lab").workers, MPIJob.get("train", namespace="lab").status_detail) == (2, "Running")
    assert [one.name for one in MPIJob.list("lab", label_selector="app=training")] == ["train", "", "other"]
    assert server.asked("GET", JOBS)[0].query["labelSelector"] == "app=training"
    assert job.suspend() is job
    assert job.resume() is job
    assert job.delete() is None
    patches = server.asked("PATCH", f"{JOBS}/train")
    assert [one.body for one in patches] == [{"spec": {"runPolicy": {"suspend": value}}} for value in (True, False)]
    assert patches[0].headers["content-type"] == "application/merge-patch+json"


def test_a_job_that_the_server_names_has_its_name_afterwards(server):
    server.on("POST", JOBS, {"metadata": {"name": "train-abc"}})
    document = MPIJob("train", "lab", image="mpi").to_dict()
    document["metadata"] = {"generateName": "train-", "namespace": "lab"}
    assert MPIJob._from_document(document).create().name == "train-abc"


def test_a_default_that_the_program_has_chosen_comes_before_the_kubeconfig(server, job, monkeypatch, tmp_path):
    monkeypatch.setattr(client.Configuration, "_default", None)
    config.load_kube_config(str(tmp_path / "kubeconfig"))
    monkeypatch.setenv("KUBECONFIG", "/nowhere")
    server.on("GET", f"{JOBS}/train", live(says("Running")))
    assert job.get_status() == "Running"


def test_a_job_that_is_there_and_fills_the_quota_is_a_conflict(server, gpu_job):
    server.on("GET", QUOTAS, a_quota({"pods": "5"}, {"pods": "5"}))
    server.on("POST", JOBS, Failure(409, "already exists", "train"))
    server.on("GET", f"{JOBS}/train", Failure(404, "not found", "train"), live())
    assert refusal(gpu_job).status == 422
    assert refusal(gpu_job).status == 409


@pytest.mark.parametrize("text", ["[]", "clusters: 3\ncontexts: 4\ncurrent-context: a"])
def test_a_kubeconfig_of_an_odd_shape_is_named(gpu_job, monkeypatch, tmp_path, text):
    (tmp_path / "odd").write_text(text)
    monkeypatch.setenv("KUBECONFIG", str(tmp_path / "odd"))
    assert "the kubeconfig cannot be used" in str(refusal(gpu_job))


def test_a_pod_that_asks_for_a_gpu_alone_is_a_best_effort():
    document = MPIJob("train", "lab", image="mpi").to_dict()
    for replicas in document["spec"]["mpiReplicaSpecs"].values():
        replicas["template"]["spec"]["containers"][0]["resources"] = {"limits": {"nvidia.com/gpu": "1"}}
    quota = {"spec": {"hard": {"pods": "1"}, "scopes": ["NotBestEffort"]}}
    assert list(problems_with(quota, document, [])) == []


def test_an_answer_that_says_nothing_is_passed_on_as_it_is(job, monkeypatch):
    double = Mock()
    double.return_value.get_namespaced_custom_object.side_effect = ApiException(status=404, reason="Not Found")
    monkeypatch.setattr("openshift_ai_sdk.training.mpijob.client.CustomObjectsApi", double)
    with pytest.raises(ApiException, match="Not Found"):
        job.get_status()


def test_a_job_that_has_no_name_yet_is_not_all_jobs_of_its_namespace(server):
    """The path of no job in particular is that of all of them, which can be deleted at once."""
    for method in ("GET", "DELETE", "PATCH"):
        server.on(method, f"{JOBS}/?", {"items": [live(says("Running"))]})
    document = MPIJob("train", "lab", image="mpi").to_dict()
    document["metadata"] = {"generateName": "train-", "namespace": "lab"}
    job = MPIJob._from_document(document)
    for ask in (job.delete, job.get_status, job.suspend, lambda: MPIJob.get("", "lab")):
        with pytest.raises(ApiException, match="the MPIJob has no name") as caught:
            ask()
        assert caught.value.status == 404
    assert server.requests == []


def test_a_path_that_is_none_is_not_taken_for_a_cluster_without_mpijobs(server):
    server.on("GET", "/apis/kubeflow.org", {"versions": [{"version": "v2beta1"}]})
    server.on("GET", "/apis/kubeflow.org/v2beta1", {"resources": [{"name": "mpijobs"}]})
    with pytest.raises(ApiException, match="Not Found") as caught:
        MPIJob.get("a/b", "lab")
    assert "expected v2beta1" not in str(caught.value)


def test_a_kubeconfig_that_cannot_even_be_looked_for_is_named(gpu_job, monkeypatch):
    monkeypatch.setenv("KUBECONFIG", f"/{'x' * 5000}")
    assert "the kubeconfig cannot be used" in str(refusal(gpu_job))


def test_a_name_with_a_slash_is_one_name(server):
    server.on("PATCH", f"{JOBS}/.*", {})
    document = MPIJob("train", "lab", image="mpi").to_dict()
    document["metadata"]["name"] = "train/status"
    MPIJob._from_document(document).suspend()
    (patch,) = server.asked("PATCH", ".*")
    assert patch.path == f"{JOBS}/train%2Fstatus"
