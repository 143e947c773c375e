"""Jobs on the embedded engine: followed, waited for, explained, and the same objects for kubectl."""

import asyncio
import json
import threading
from pathlib import Path
from typing import cast

import pytest
from kubernetes.client.exceptions import ApiException

from openshift_ai_sdk.training import AsyncMPIJob, Explanation, MPIJob, ResourceRequirements
from testbed.mpi import install_mpi
from tests.contract.command_line import CommandLine
from tests.contract.waiting import eventually

PATIENCE_S = 60
SMALL = ResourceRequirements(cpu=1, memory="1Gi")


def shell(script: str) -> list[str]:
    return ["sh", "-c", script]


def a_job(namespace: str, script: str, name: str = "train", **more: object) -> MPIJob:
    return MPIJob(name, namespace, image="mpi", command=shell(script), **more)  # type: ignore[arg-type]


def until_explained(job: MPIJob, cause: str, words: str) -> Explanation:
    def is_so() -> Explanation | None:
        found = job.explain()
        return found if found.cause == cause and words in found.verdict else None

    return cast(Explanation, eventually(is_so))


def test_ranks_of_a_real_mpirun_run_on_every_worker_and_nobody_is_warned(namespace):
    path = f"{install_mpi('openmpi').programs}:/usr/bin:/bin"
    allowed = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
    job = MPIJob(
        "train", namespace, image="mpi", command=["mpirun", "-np", "2", "hostname"], env={"PATH": path, **allowed}
    )
    assert job.create().wait_for_completion(timeout=PATIENCE_S) == "Succeeded"
    assert set(job.get_logs().split()) >= {"train-worker-0", "train-worker-1"}
    assert job.where_ranks_ran().is_everywhere is True
    assert job.explain().cause == "Succeeded"


def test_a_log_is_followed_over_a_launcher_that_is_tried_again(namespace, tmp_path: Path):
    tried = tmp_path / "tried"
    count = "for i in 1 2 3 4 5; do echo $0 $i; sleep 0.1; done"
    job = a_job(
        namespace,
        f"if [ -e {tried} ]; then set -- b; else touch {tried}; sh -c '{count}' a; exit 3; fi; sh -c '{count}' b",
        backoff_limit=2,
    ).create()
    lines = list(job.get_logs(follow=True))
    assert lines == [f"{attempt} {number}\n" for attempt in "ab" for number in range(1, 6)]
    assert job.get_status() == "Succeeded"


def test_a_log_of_many_lines_is_followed_whole(namespace):
    job = a_job(namespace, "seq 1 20000").create()
    assert list(job.get_logs(follow=True, tail_lines=None)) == [f"{number}\n" for number in range(1, 20001)]
    assert job.get_logs(tail_lines=2) == "19999\n20000\n"


def test_a_job_is_followed_and_cancelled_beside_an_event_loop(namespace):
    async def use() -> str:
        job = AsyncMPIJob("train", namespace, image="mpi", command=shell("echo hello; sleep 600"))
        await job.create()
        async for line in job.get_logs(follow=True):
            assert line == "hello\n"
            break
        waiting = asyncio.ensure_future(job.wait_for_completion())
        await asyncio.sleep(0.2)
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting
        await job.delete()
        return job.name

    assert asyncio.run(use()) == "train"
    eventually(lambda: "openshift-ai-sdk" not in [thread.name for thread in threading.enumerate()])


def test_workers_that_do_not_fit_together_are_explained_in_the_schedulers_words(namespace):
    wanted = ResourceRequirements(cpu=1, memory="1Gi", gpu=2)
    job = a_job(namespace, "sleep 600", workers=3, resources=wanted).create()
    explanation = until_explained(job, "Unschedulable", "does not fit as a whole")
    assert f"the gang {namespace}/train" in explanation.verdict
    assert {worker["phase"] for worker in job.get_worker_statuses()} == {"Pending"}
    with pytest.raises(TimeoutError, match="cannot be scheduled"):
        job.wait_for_completion(timeout=1)


def test_a_quota_stops_a_job_before_it_is_created_and_explains_one_that_kubectl_created(
    namespace, kubectl: CommandLine
):
    kubectl("create", "quota", "team", "--hard=pods=2")
    eventually(lambda: "pods" in kubectl("get", "quota", "team", "-o", "jsonpath={.status.used}"))
    job = a_job(namespace, "sleep 600", workers=4)
    with pytest.raises(ApiException) as caught:
        job.create()
    assert caught.value.status == 422
    assert "quota exceeded" in str(caught.value).lower()
    assert kubectl("get", "mpijobs", "-o", "name") == ""
    kubectl("create", "-f", "-", input=job.to_yaml())
    assert "exceeded quota: team" in until_explained(job, "Quota", "quota exceeded").evidence[0]


@pytest.mark.parametrize(
    ("script", "words"),
    [("exit 7", "exit code 7"), ("echo 'There are not enough slots available' >&2; exit 1", "more ranks than")],
)
def test_a_launcher_that_fails_is_explained(namespace, script, words):
    job = a_job(namespace, script, backoff_limit=0).create()
    assert job.wait_for_completion(timeout=PATIENCE_S) == "Failed"
    assert words in job.explain().verdict


def test_an_image_that_is_not_there_is_what_a_timeout_speaks_of(namespace):
    job = MPIJob("train", namespace, image="registry.invalid/none:1").create()
    eventually(lambda: job.explain().cause == "ImagePull")
    with pytest.raises(TimeoutError, match="cannot be pulled"):
        job.wait_for_completion(timeout=0.5)


def test_a_suspended_job_waits_and_a_resumed_one_runs(namespace):
    job = a_job(namespace, "sleep 600").create()
    eventually(lambda: job.get_status() == "Running")
    job.suspend()
    eventually(lambda: job.get_status() == "Pending" and job.status_detail.startswith("Suspended"))
    job.resume()
    eventually(lambda: job.get_status() == "Running")
    job.delete()


def test_an_invalid_job_is_not_called_pending(namespace, kubectl: CommandLine):
    document = a_job(namespace, "true").to_dict()
    document["spec"]["mpiReplicaSpecs"]["Launcher"]["replicas"] = 2
    kubectl("create", "-f", "-", input=json.dumps(document))
    job = MPIJob.get("train", namespace)
    assert job.wait_for_completion(timeout=PATIENCE_S) == "Failed"
    assert job.status_detail.startswith("Invalid: ")
    assert job.explain().cause == "Invalid"


@pytest.mark.parametrize(("role", "pod"), [("Worker", "train-worker-0"), ("Launcher", "train-launcher")])
def test_a_pod_that_the_api_server_refuses_is_explained_in_its_words(namespace, kubectl: CommandLine, role, pod):
    document = a_job(namespace, "true").to_dict()
    document["spec"]["mpiReplicaSpecs"][role]["template"]["spec"]["priorityClassName"] = "unheard-of"
    kubectl("create", "-f", "-", input=json.dumps(document))
    job = MPIJob.get("train", namespace)
    assert "unheard-of" in until_explained(job, "PodRefused", f"refuses {pod}").evidence[0]
    assert job.get_status() == "Pending"
    job.delete()


def test_a_job_of_the_same_name_is_not_taken_for_the_one_that_was_waited_for(namespace):
    job = a_job(namespace, "sleep 600").create()

    def replace(status: str) -> None:
        if status == "Running":
            MPIJob.get("train", namespace).delete()
            a_job(namespace, "true").create()

    with pytest.raises(ApiException, match="was deleted while it was waited for"):
        job.wait_for_completion(timeout=PATIENCE_S, callback=replace)


def test_a_job_without_a_name_deletes_no_other(namespace):
    a_job(namespace, "sleep 600").create()
    document = a_job(namespace, "true").to_dict()
    document["metadata"] = {"generateName": "train-", "namespace": namespace}
    unnamed = MPIJob.from_yaml(json.dumps(document))
    with pytest.raises(ApiException, match="has no name"):
        unnamed.delete()
    assert [one.name for one in MPIJob.list(namespace)] == ["train"]
    assert unnamed.create().name.startswith("train-")
    unnamed.delete()
    assert eventually(lambda: [one.name for one in MPIJob.list(namespace)] == ["train"])


def test_a_job_that_is_deleted_while_it_is_waited_for_is_a_clear_error(namespace, kubectl: CommandLine):
    job = a_job(namespace, "sleep 600").create()

    def delete(status: str) -> None:
        if status == "Running":
            kubectl("delete", "mpijob", "train", "--wait=false")

    with pytest.raises(ApiException, match="was deleted while it was waited for") as caught:
        job.wait_for_completion(timeout=PATIENCE_S, callback=delete)
    assert caught.value.status == 404


def test_kubectl_and_the_sdk_see_the_same_objects(namespace, kubectl: CommandLine):
    job = a_job(namespace, "echo hello; sleep 600", resources=SMALL, labels={"app": "training"}).create()
    eventually(lambda: job.get_status() == "Running")
    assert kubectl("get", "mpijobs", "-o", "name").split() == ["mpijob.kubeflow.org/train"]
    assert eventually(lambda: kubectl("logs", "train-launcher")) == "hello\n"
    assert [one.name for one in MPIJob.list(namespace, label_selector="app=training")] == ["train"]
    assert MPIJob.list(namespace, label_selector="app=other") == []
    again = MPIJob.get("train", namespace)
    assert (again.workers, again.resources, again.command) == (2, SMALL, job.command)
    workers = job.get_worker_statuses()
    assert [(one["index"], one["phase"], one["ready"]) for one in workers] == [
        (0, "Running", True),
        (1, "Running", True),
    ]
    assert all(one["start_time"].tzinfo is not None and one["node"] for one in workers)
    job.delete()
    eventually(lambda: kubectl("get", "mpijobs,pods", "-o", "name") == "")
