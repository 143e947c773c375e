"""The pods of an MPIJob: whose variables count, what a worker runs, who is in a gang."""

from typing import Any

import pytest

from tessera.kube.objects import Document
from tessera.model.annotations.keys import GANG
from tessera.operators.mpi_children import make_config, make_gang, make_service, wants_gang
from tessera.operators.mpi_objects import MpiJob
from tessera.operators.mpi_templates import MpiSettings, make_launcher, make_worker
from tests.unit.operators.mpi_making import SETTINGS, a_job


def launcher_of(job: MpiJob, settings: MpiSettings = SETTINGS) -> Document:
    replica = job.spec.mpi_replica_specs.launcher
    assert replica is not None
    return make_launcher(job, replica, settings, is_name_free=True)


def worker_of(job: MpiJob, index: int = 0) -> Document:
    replica = job.spec.mpi_replica_specs.worker
    assert replica is not None
    return make_worker(job, replica, index, SETTINGS)


def with_container(role: str, **container: Any) -> MpiJob:
    """A job whose launcher or worker has such a container."""
    template = {"spec": {"containers": [{"name": "main", **container}]}}
    other = {"template": {"spec": {"containers": [{"name": "main"}]}}}
    specs = {"Launcher": other, "Worker": {**other, "replicas": 2}}
    return a_job(mpiReplicaSpecs={**specs, role: {**specs[role], "template": template}})


def variables(pod_spec: Document) -> dict[str, str]:
    env: list[Document] = pod_spec["containers"][0]["env"]
    assert len({one["name"] for one in env}) == len(env), "a variable is there twice"
    return {one["name"]: one["value"] for one in env}


def test_a_worker_without_a_command_can_be_entered() -> None:
    assert worker_of(a_job())["spec"]["containers"][0]["command"] == ["tessera-mpi-host"]


@pytest.mark.parametrize("command", [["/usr/sbin/sshd", "-De"], ["sshd"]])
def test_a_worker_that_would_run_sshd_can_be_entered_too(command: list[str]) -> None:
    container = worker_of(with_container("Worker", command=command, args=["-f", "x"]))["spec"]["containers"][0]
    assert (container["command"], container["args"]) == (["tessera-mpi-host"], [])


@pytest.mark.parametrize(
    ("script", "runs"),
    [
        ("/usr/sbin/sshd -De", "tessera-mpi-host -De"),
        ("mkdir -p /run/sshd && exec sshd -D", "mkdir -p /run/sshd && exec tessera-mpi-host -D"),
        ("cat /etc/ssh/sshd_config; sleep 9", "cat /etc/ssh/sshd_config; sleep 9"),
    ],
)
def test_a_shell_that_would_start_sshd_starts_our_host(script: str, runs: str) -> None:
    as_command = worker_of(with_container("Worker", command=["/bin/bash", "-c", script]))["spec"]["containers"][0]
    assert as_command["command"] == ["/bin/bash", "-c", runs]
    as_argument = worker_of(with_container("Worker", command=["sh"], args=["-c", script]))["spec"]["containers"][0]
    assert (as_argument["command"], as_argument["args"]) == (["sh"], ["-c", runs])


def test_a_worker_with_a_command_of_its_own_runs_that() -> None:
    container = worker_of(with_container("Worker", command=["sleep"], args=["9"]))["spec"]["containers"][0]
    assert (container["command"], container["args"]) == (["sleep"], ["9"])


def test_what_the_user_sets_of_mpi_counts_but_not_who_may_enter() -> None:
    env = [{"name": "OMPI_MCA_pml", "value": "ucx"}, {"name": "TESSERA_MPI_JOB", "value": "another"}]
    told = variables(launcher_of(with_container("Launcher", env=env))["spec"]["template"]["spec"])
    assert told["OMPI_MCA_pml"] == "ucx"
    assert told["TESSERA_MPI_JOB"] == "u-1"
    assert told["TESSERA_MPI_BOARD"] == "/boards/u-1"


def test_daemons_of_mpi_do_not_fill_the_log_with_words_about_compression() -> None:
    for pod_spec in (launcher_of(a_job())["spec"]["template"]["spec"], worker_of(a_job())["spec"]):
        assert variables(pod_spec)["PMIX_MCA_pcompress_base_silence_warning"] == "1"


def test_our_programs_are_found_whatever_the_users_path_is() -> None:
    told = variables(worker_of(with_container("Worker", env=[{"name": "PATH", "value": "/opt/mpi"}]))["spec"])
    assert told["PATH"] == "/p/first:/opt/mpi:/p/last"
    assert variables(worker_of(a_job())["spec"])["PATH"] == "/p/first:$(PATH):/p/last"


@pytest.mark.parametrize(
    ("implementation", "open_mpi", "hydra"),
    [("OpenMPI", "hostfile", "hostfile.hydra"), ("MPICH", "hostfile.openmpi", "hostfile")],
)
def test_every_mpi_finds_a_hostfile_in_its_own_form(implementation: str, open_mpi: str, hydra: str) -> None:
    told = variables(launcher_of(a_job(mpiImplementation=implementation))["spec"]["template"]["spec"])
    assert told["OMPI_MCA_orte_default_hostfile"] == f"/etc/mpi/{open_mpi}"
    assert told["PRTE_MCA_prte_default_hostfile"] == f"/etc/mpi/{open_mpi}"
    assert told["HYDRA_HOST_FILE"] == f"/etc/mpi/{hydra}"


def test_pods_find_mpi_where_the_engine_found_it_unless_they_are_told_otherwise() -> None:
    settings = MpiSettings(first="/f", last="/l", boards="/b", locations={"LD_LIBRARY_PATH": "/mpi/lib"})
    assert variables(launcher_of(a_job(), settings)["spec"]["template"]["spec"])["LD_LIBRARY_PATH"] == "/mpi/lib"
    own = with_container("Launcher", env=[{"name": "LD_LIBRARY_PATH", "value": "/own"}])
    assert variables(launcher_of(own, settings)["spec"]["template"]["spec"])["LD_LIBRARY_PATH"] == "/own"


def test_where_nothing_can_be_mounted_hostfiles_are_on_the_board() -> None:
    settings = MpiSettings(first="/p/first", last="/p/last", boards="/boards", shows_mounts=False)
    told = variables(launcher_of(a_job(), settings)["spec"]["template"]["spec"])
    assert told["OMPI_MCA_orte_default_hostfile"] == "/boards/u-1/hostfile"


def test_an_agent_whose_path_has_blanks_is_called_by_its_name() -> None:
    settings = MpiSettings(first="/my state/first", last="/l", boards="/b")
    told = variables(launcher_of(a_job(), settings)["spec"]["template"]["spec"])
    assert told["OMPI_MCA_plm_rsh_agent"] == "tessera-mpi-enter"


def test_a_launcher_is_given_no_cards_unless_it_is_a_worker_too() -> None:
    assert variables(launcher_of(a_job())["spec"]["template"]["spec"])["NVIDIA_VISIBLE_DEVICES"] == ""
    both = a_job(runLauncherAsWorker=True)
    assert "NVIDIA_VISIBLE_DEVICES" not in variables(launcher_of(both)["spec"]["template"]["spec"])
    assert worker_of(both, 1)["metadata"]["labels"]["training.kubeflow.org/replica-index"] == "2"


def test_limits_of_the_run_are_those_of_the_launchers_job() -> None:
    policy = {"backoffLimit": 0, "activeDeadlineSeconds": 9, "ttlSecondsAfterFinished": 7, "suspend": True}
    spec = launcher_of(a_job(runPolicy=policy))["spec"]
    assert {name: spec[name] for name in policy} == policy
    assert spec["template"]["spec"]["restartPolicy"] == "OnFailure"
    assert worker_of(a_job())["spec"]["restartPolicy"] == "Never"


def test_workers_that_want_cards_are_a_gang_without_their_launcher() -> None:
    job = with_container("Worker", resources={"limits": {"nvidia.com/gpu": 1}})
    assert worker_of(job)["metadata"]["annotations"][GANG] == "fit"
    assert GANG not in launcher_of(job)["spec"]["template"]["metadata"].get("annotations", {})
    assert make_gang(job)["spec"] == {"minMember": 2}


def test_workers_that_want_only_what_every_machine_has_are_no_gang() -> None:
    assert not wants_gang(with_container("Worker", resources={"limits": {"cpu": 1, "memory": "1Gi"}}))


def test_a_gang_that_the_user_names_stays() -> None:
    container = {"name": "main", "resources": {"limits": {"nvidia.com/gpu": 1}}}
    template = {"metadata": {"annotations": {GANG: "mine"}}, "spec": {"containers": [container]}}
    launcher = {"template": {"spec": {"containers": [{"name": "main"}]}}}
    job = a_job(mpiReplicaSpecs={"Launcher": launcher, "Worker": {"replicas": 2, "template": template}})
    assert not wants_gang(job)
    assert worker_of(job)["metadata"]["annotations"][GANG] == "mine"


@pytest.mark.parametrize(("asked", "least"), [(1, 1), (5, 2), (0, 2)])
def test_a_gang_may_begin_with_fewer_but_never_waits_for_more(asked: int, least: int) -> None:
    job = a_job(runPolicy={"schedulingPolicy": {"minAvailable": asked}})
    assert make_gang(job)["spec"]["minMember"] == least


def test_hosts_are_told_in_all_forms_and_as_they_come() -> None:
    data = make_config(a_job(slotsPerWorker=2), ["fit-worker-1"])["data"]
    assert data["hostfile"] == "fit-worker-0.fit.lab.svc slots=2\nfit-worker-1.fit.lab.svc slots=2\n"
    assert data["hostfile.hydra"] == "fit-worker-0.fit.lab.svc:2\nfit-worker-1.fit.lab.svc:2\n"
    assert data["discover_hosts.sh"] == "#!/bin/sh\necho fit-worker-1.fit.lab.svc\n"


def test_a_launcher_that_is_a_worker_is_the_first_host() -> None:
    job = a_job(runLauncherAsWorker=True, workers=1)
    assert make_config(job, [])["data"]["hostfile"].startswith("fit-launcher.fit.lab.svc slots=1\n")
    assert make_service(job)["spec"]["publishNotReadyAddresses"] is True
