"""MPIJobs as our engine's API server takes them, beside the definition that clusters have."""

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from tessera.model.definitions import load_definitions, load_local_definitions
from tests.contract.waiting import eventually
from tests.mpi.jobs import MpiJobs, an_mpi_job
from tests.mpi.kubeflow import kubeflow_file

ROOT = Path(__file__).parents[2]
COMPARED = ("type", "format", "enum", "default", "required", "x-kubernetes-list-type", "x-kubernetes-list-map-keys")

NOT_FILLED_IN = ".spec.sshAuthMountPath: default"
"""Keys are mounted nowhere here."""


def kubeflows(name: str) -> Any:
    return yaml.safe_load(kubeflow_file(name).read_text())


def differences(ours: Any, theirs: Any, path: str) -> list[str]:
    """Where the two say something else. Templates of pods are checked when pods are made of them."""
    if path.endswith(("template", "labelSelector")):
        return []
    found = [f"{path}: {key}" for key in COMPARED if ours.get(key) != theirs.get(key)]
    for name, part in theirs.get("properties", {}).items():
        if name not in ours.get("properties", {}) and path:
            found.append(f"{path}.{name}: missing")
        elif name in ours.get("properties", {}):
            found += differences(ours["properties"][name], part, f"{path}.{name}")
    for key in ("items", "additionalProperties"):
        if isinstance(theirs.get(key), dict):
            found += differences(ours.get(key, {}), theirs[key], path)
    return found


def schema_of(definition: Any) -> Any:
    return definition["spec"]["versions"][0]["schema"]["openAPIV3Schema"]


def test_the_definition_takes_what_kubeflows_takes() -> None:
    (ours,), theirs = load_local_definitions(), kubeflows("mpijob-crd.yaml")
    assert ours["metadata"]["name"] == theirs["metadata"]["name"]
    assert ours["spec"]["names"] == theirs["spec"]["names"]
    assert differences(schema_of(ours), schema_of(theirs), "") == [NOT_FILLED_IN]


def test_clusters_are_not_given_a_definition_that_is_kubeflows() -> None:
    assert "mpijobs.kubeflow.org" not in {one["metadata"]["name"] for one in load_definitions()}


def test_kubeflows_own_example_gets_its_pods(jobs: MpiJobs) -> None:
    jobs.apply(kubeflows("mpijob-pi.yaml"))
    eventually(lambda: {"pi-worker-0", "pi-worker-1", "pi-launcher"} <= set(jobs.pods("pi")))
    pods = jobs.pods("pi")
    assert pods["pi-worker-0"]["spec"]["containers"][0]["command"] == ["tessera-mpi-host"]
    eventually(lambda: "can be entered" in jobs.log("pi-worker-0"))


def test_defaults_are_filled_in_and_what_is_not_known_in_templates_stays(jobs: MpiJobs) -> None:
    job = an_mpi_job("full", ["true"], run_policy={"suspend": True})
    template = job["spec"]["mpiReplicaSpecs"]["Worker"]["template"]
    template["spec"] |= {"nodeSelector": {"gpu": "on"}, "someday": {"known": True}}
    jobs.apply(job)
    spec = jobs.get("full")["spec"]
    assert spec["mpiReplicaSpecs"]["Worker"]["template"] == template
    assert spec["slotsPerWorker"] == 1
    assert "sshAuthMountPath" not in spec
    assert (spec["launcherCreationPolicy"], spec["mpiImplementation"]) == ("AtStartup", "OpenMPI")


def test_what_no_mpijob_can_be_is_refused(jobs: MpiJobs) -> None:
    unknown = an_mpi_job("unknown", ["true"], mpiImplementation="LAM")
    assert 'Unsupported value: "LAM"' in jobs.kubectl.refusal("apply", "-f", "-", input=json.dumps(unknown))
    without = an_mpi_job("without", ["true"])
    del without["spec"]["mpiReplicaSpecs"]
    assert "mpiReplicaSpecs" in jobs.kubectl.refusal("apply", "-f", "-", input=json.dumps(without))


@pytest.mark.parametrize(
    ("part", "wrong"),
    [
        (("spec", "dnsConfig"), "x"),
        (("spec", "volumes"), 5),
        (("spec", "containers", 0, "volumeMounts"), 7),
        (("spec", "containers", 0, "resources"), "lots"),
        (("spec", "containers", 0, "resources"), {"limits": ["nvidia.com/gpu"]}),
    ],
)
def test_templates_of_which_no_pod_could_be_made_are_refused(jobs: MpiJobs, part: tuple[Any, ...], wrong: Any) -> None:
    *path, key = part
    job = an_mpi_job("odd", ["true"])
    for name in ("Launcher", "Worker"):
        place = job["spec"]["mpiReplicaSpecs"][name]["template"]
        for step in path:
            place = place[step]
        place[key] = wrong
    said = jobs.kubectl.refusal("create", "--validate=false", "-f", "-", input=json.dumps(job))
    assert str(key) in said


def test_kubectl_lists_and_describes_mpijobs(jobs: MpiJobs) -> None:
    jobs.apply(an_mpi_job("seen", ["true"]))
    jobs.until_condition("seen", "Succeeded")
    assert "seen" in jobs.kubectl("get", "mpijobs")
    assert "successfully completed" in jobs.kubectl("describe", "mpijob", "seen")
    jobs.delete("seen")
    assert "not found" in jobs.kubectl.refusal("get", "mpijob", "seen")
