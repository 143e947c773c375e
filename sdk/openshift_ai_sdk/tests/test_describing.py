"""A job described in Python: what its document says, and what may not be said."""

import pytest
import yaml

from openshift_ai_sdk.training import MPIJob, ResourceRequirements

GANG, GANG_SIZE = "gpu.scheduling/gang", "gpu.scheduling/gang-size"


def described(**more):
    return MPIJob(**{"name": "train", "workers": 4, "image": "mpi", **more})


def roles(job):
    replicas = job.to_dict()["spec"]["mpiReplicaSpecs"]
    return [replicas[role]["template"]["spec"] for role in ("Launcher", "Worker")]


def containers(job):
    return [spec["containers"][0] for spec in roles(job)]


def test_a_new_job_is_of_the_version_that_the_operator_serves_and_always_names_its_clean_up():
    document = described().to_dict()
    assert (document["apiVersion"], document["kind"]) == ("kubeflow.org/v2beta1", "MPIJob")
    assert document["spec"]["runPolicy"] == {"cleanPodPolicy": "Running", "backoffLimit": 6}
    assert document["spec"]["slotsPerWorker"] == 1
    assert document["spec"]["mpiReplicaSpecs"]["Launcher"]["replicas"] == 1


def test_launcher_and_workers_share_image_variables_volumes_and_nodes():
    shared = {
        "volume_mounts": [{"name": "data", "mountPath": "/data"}],
        "volumes": [{"name": "data", "emptyDir": {}}],
        "node_selector": {"disk": "fast"},
        "tolerations": [{"operator": "Exists"}],
        "affinity": {"nodeAffinity": {}},
    }
    job = described(env={"NCCL_DEBUG": "INFO"}, **shared)
    for container in containers(job):
        assert container["image"] == "mpi"
        assert {"name": "NCCL_DEBUG", "value": "INFO"} in container["env"]
        assert container["volumeMounts"] == shared["volume_mounts"]
    for spec in roles(job):
        assert (spec["volumes"], spec["nodeSelector"]) == (shared["volumes"], shared["node_selector"])
        assert (spec["tolerations"], spec["affinity"]) == (shared["tolerations"], shared["affinity"])


def test_only_the_launcher_runs_the_command():
    launcher, worker = containers(described(command=["mpirun"], args=["-np", "4"]))
    assert (launcher["command"], launcher["args"]) == (["mpirun"], ["-np", "4"])
    assert "command" not in worker
    assert "args" not in worker


def test_open_mpi_5_is_told_its_hosts_in_the_launcher_only():
    launcher, worker = containers(described())
    assert {"name": "PRTE_MCA_prte_default_hostfile", "value": "/etc/mpi/hostfile"} in launcher["env"]
    assert "env" not in worker
    assert described().env is None


def test_what_the_user_says_to_open_mpi_5_counts():
    launcher, _ = containers(described(env={"PRTE_MCA_prte_default_hostfile": "/mine"}))
    assert launcher["env"] == [{"name": "PRTE_MCA_prte_default_hostfile", "value": "/mine"}]


def test_workers_get_their_resources_and_the_launcher_a_small_part_without_gpus():
    launcher, worker = containers(described(resources=ResourceRequirements(cpu=8, memory="64Gi", gpu=2)))
    assert worker["resources"]["limits"] == {"cpu": "8", "memory": "64Gi", "nvidia.com/gpu": "2"}
    assert worker["resources"]["requests"] == worker["resources"]["limits"]
    assert launcher["resources"]["limits"] == {"cpu": "1", "memory": "4Gi"}


def test_a_part_of_a_gpu_is_asked_for_by_our_names():
    wanted = ResourceRequirements(gpu=1, gpu_memory_mb=8000, gpu_cores=30)
    _, worker = containers(described(resources=wanted))
    assert worker["resources"]["limits"]["nvidia.com/gpumem"] == "8000"
    assert worker["resources"]["limits"]["nvidia.com/gpucores"] == "30"


def test_workers_with_gpus_are_a_gang_and_others_are_not():
    with_gpus = described(resources=ResourceRequirements(gpu=1)).to_dict()["spec"]["mpiReplicaSpecs"]
    assert with_gpus["Worker"]["template"]["metadata"]["annotations"] == {GANG: "train", GANG_SIZE: "4"}
    assert "metadata" not in with_gpus["Launcher"]["template"]
    assert "metadata" not in described().to_dict()["spec"]["mpiReplicaSpecs"]["Worker"]["template"]


def test_a_gang_grows_with_its_workers():
    job = MPIJob.from_yaml(described(resources=ResourceRequirements(gpu=1)).to_yaml())
    job.workers = 6
    worker = job.to_dict()["spec"]["mpiReplicaSpecs"]["Worker"]
    assert (worker["replicas"], worker["template"]["metadata"]["annotations"][GANG_SIZE]) == (6, "6")


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        ({"workers": 1}, "workers is 1, expected a whole number from 2 to 100"),
        ({"workers": 101}, "workers is 101, expected a whole number from 2 to 100"),
        ({"workers": "4"}, "workers is '4', expected a whole number"),
        ({"workers": True}, "workers is True, expected a whole number"),
        ({"slots_per_worker": 9}, "slots_per_worker is 9, expected a whole number from 1 to 8"),
        ({"clean_pod_policy": "Never"}, "clean_pod_policy is 'Never', expected one of Running, All, None"),
        ({"backoff_limit": -1}, "backoff_limit is -1, expected a whole number of at least 0"),
        ({"active_deadline_seconds": 0}, "active_deadline_seconds is 0, expected"),
        ({"ttl_seconds_after_finished": -1}, "ttl_seconds_after_finished is -1, expected"),
        ({"command": "mpirun -np 4"}, "command is 'mpirun -np 4', expected a list of texts"),
        ({"env": {"RANKS": 4}}, "env has 'RANKS': 4, expected texts"),
        ({"env": {"A=B": "c"}}, "env has the name 'A=B'"),
        ({"volumes": {"name": "data"}}, r"volumes is .*, expected a list of dictionaries"),
        ({"resources": {"gpu": 1}}, r"resources is .*, expected such as ResourceRequirements"),
        ({"image": ""}, "image is '', expected the name of a container image"),
        ({"namespace": "My_Team"}, "namespace is 'My_Team', expected"),
    ],
)
def test_a_wrong_value_is_refused_in_a_sentence(settings, sentence):
    with pytest.raises(ValueError, match=sentence):
        described(**settings)


@pytest.mark.parametrize("name", ["", "Train", "-train", "train-", "a" * 64, "a..b", "train\n", None, 7])
def test_what_is_no_name_is_refused(name):
    with pytest.raises(ValueError, match=r"^name is "):
        described(name=name)


@pytest.mark.parametrize("name", ["a", "7-train", "team.train", "a" * 63])
def test_every_name_that_the_contract_allows_can_be_described(name):
    assert described(name=name).name == name


def test_a_wrong_value_that_was_set_later_is_refused_when_the_document_is_made():
    job = described()
    job.workers = 0
    with pytest.raises(ValueError, match="workers is 0"):
        job.to_yaml()


def test_a_job_without_an_image_can_be_described_and_not_exported():
    with pytest.raises(ValueError, match="image of the Launcher is missing"):
        MPIJob("train").to_yaml()


def test_the_yaml_is_what_kubectl_takes():
    job = described(env={"A": "y", "B": "1e3", "C": "12:30"}, command=["bash", "-c", "echo 1\necho 2\n"])
    assert yaml.safe_load(job.to_yaml()) == job.to_dict()
    assert all(f'value: "{text}"' in job.to_yaml() for text in ("y", "1e3", "12:30"))
    assert "- |\n" in job.to_yaml()


def test_changing_what_one_gave_later_changes_nothing_that_was_made():
    env = {"A": "1"}
    job = described(env=env)
    document = job.to_dict()
    env["A"] = "2"
    assert {"name": "A", "value": "1"} in document["spec"]["mpiReplicaSpecs"]["Worker"]["template"]["spec"][
        "containers"
    ][0]["env"]
