"""MPIJobs that somebody else wrote: nothing of them is lost, and none of them breaks anything."""

import copy
import json

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from openshift_ai_sdk.training import MPIJob, ResourceRequirements
from openshift_ai_sdk.training.yaml_text import dump_document, load_document

FOREIGN = """
apiVersion: kubeflow.org/v2beta1
kind: MPIJob
metadata:
  name: pi
  annotations: {started: 2026-01-01, owner: "on"}
  finalizers: [team.example/keep]
spec:
  launcherCreationPolicy: WaitForWorkersReady
  sshAuthMountPath: /opt/mpi/.ssh
  somethingNew: {from: the future}
  runPolicy: {cleanPodPolicy: All, schedulingPolicy: {minAvailable: 2}}
  mpiReplicaSpecs:
    Launcher:
      template:
        metadata: {labels: {app: pi}}
        spec:
          serviceAccountName: runner
          containers:
          - {name: launcher, image: mpi-pi, command: [mpirun], args: ["-n", "2"], securityContext: {runAsUser: 1000}}
    Worker:
      replicas: 1
      template:
        spec:
          containers:
          - name: worker
            image: mpi-pi
            command: [/usr/sbin/sshd]
            env:
            - {name: PLAIN, value: "1"}
            - {name: SECRET, valueFrom: {secretKeyRef: {name: s, key: k}}}
            resources: {limits: {cpu: 1, memory: 1Gi}}
          - {name: sidecar, image: other}
          volumes: [{name: v, secret: {secretName: s, defaultMode: 0600}}]
"""
BOMB = "a0: &a0 [x, x, x, x, x, x, x, x, x]\n" + "\n".join(
    f"a{one}: &a{one} [{', '.join([f'*a{one - 1}'] * 9)}]" for one in range(1, 9)
)
SERVER_SIDE = {"uid": "u", "resourceVersion": "7", "generation": 3, "managedFields": [{}], "creationTimestamp": "t"}


def test_nothing_of_a_foreign_job_is_lost():
    assert yaml.safe_load(MPIJob.from_yaml(FOREIGN).to_yaml()) == load_document(FOREIGN)


def test_a_foreign_job_is_read():
    job = MPIJob.from_yaml(FOREIGN)
    assert (job.name, job.namespace, job.workers, job.image) == ("pi", "default", 1, "mpi-pi")
    assert (job.command, job.args, job.env) == (["mpirun"], ["-n", "2"], {"PLAIN": "1"})
    assert job.resources == ResourceRequirements(cpu=1, memory="1Gi")
    assert (job.clean_pod_policy, job.slots_per_worker, job.backoff_limit) == ("All", 1, 6)


def test_only_what_is_set_anew_changes():
    job = MPIJob.from_yaml(FOREIGN)
    job.workers, job.image, job.env = 3, "mpi-pi:2", {"PLAIN": "2"}
    wanted = load_document(FOREIGN)
    replicas = wanted["spec"]["mpiReplicaSpecs"]
    replicas["Worker"]["replicas"] = 3
    for role in ("Launcher", "Worker"):
        replicas[role]["template"]["spec"]["containers"][0]["image"] = "mpi-pi:2"
    plain, secret = replicas["Worker"]["template"]["spec"]["containers"][0]["env"]
    replicas["Worker"]["template"]["spec"]["containers"][0]["env"] = [{**plain, "value": "2"}, secret]
    replicas["Launcher"]["template"]["spec"]["containers"][0]["env"] = [{"name": "PLAIN", "value": "2"}]
    assert job.to_dict() == wanted


def test_what_the_server_wrote_does_not_go_back_to_it():
    document = load_document(FOREIGN)
    document["metadata"].update(SERVER_SIDE)
    document["status"] = {"conditions": []}
    assert MPIJob.from_yaml(dump_document(document)).to_dict() == load_document(FOREIGN)


def test_dates_and_times_of_day_are_texts_as_in_kubernetes():
    text = FOREIGN.replace('args: ["-n", "2"]', "args: [12:30, 0x10, 0600, 0o600, 1e3, 2026-01-01]")
    assert MPIJob.from_yaml(text).args == ["12:30", 16, 384, 384, 1000.0, "2026-01-01"]


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("a: [", "the YAML cannot be read"),
        ("", "the YAML has 0 documents"),
        ("--- {a: 1}\n--- {b: 2}", "the YAML has 2 documents"),
        ("just words", "expected a mapping"),
        ("kind: Job", "kind is 'Job', expected 'MPIJob'"),
        (FOREIGN.replace("v2beta1", "v1"), "apiVersion is 'kubeflow.org/v1', expected 'kubeflow.org/v2beta1'"),
        ("apiVersion: kubeflow.org/v2beta1\nkind: MPIJob\nmetadata: {name: a}", "has no spec"),
        ("apiVersion: kubeflow.org/v2beta1\nkind: MPIJob\nspec: {}", "has no metadata.name"),
        (None, "the YAML is NoneType, expected a text"),
    ],
)
def test_what_is_no_mpijob_is_refused_in_a_sentence(text, sentence):
    with pytest.raises(ValueError, match=sentence):
        MPIJob.from_yaml(text)


scalars = st.one_of(st.none(), st.booleans(), st.integers(-(2**40), 2**40), st.text(max_size=12), st.floats(-1e6, 1e6))
values = st.recursive(
    scalars,
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(st.text(max_size=8), inner, max_size=3)),
)
KEYS = [
    "metadata",
    "spec",
    "status",
    "name",
    "mpiReplicaSpecs",
    "Launcher",
    "Worker",
    "replicas",
    "template",
    "containers",
]
KEYS += ["runPolicy", "env", "image", "command", "volumes", "resources", "limits", "conditions", "type", "annotations"]
odd_documents = st.recursive(
    scalars,
    lambda inner: st.one_of(
        st.lists(inner, max_size=3), st.dictionaries(st.sampled_from(KEYS) | st.text(max_size=5), inner, max_size=6)
    ),
    max_leaves=25,
)


@given(values)
def test_whatever_is_written_as_yaml_is_read_back_the_same(value):
    document = {"key": value}
    assert load_document(dump_document(document)) == document


@given(values, values)
@settings(deadline=None)
def test_whatever_a_foreign_job_holds_survives(somewhere, elsewhere):
    document = load_document(FOREIGN)
    document["spec"]["unknown"] = somewhere
    document["spec"]["mpiReplicaSpecs"]["Worker"]["template"]["spec"]["unknown"] = elsewhere
    read = MPIJob.from_yaml(dump_document(document))
    assert load_document(read.to_yaml()) == document


@given(st.dictionaries(st.sampled_from(KEYS), odd_documents, max_size=6))
@settings(deadline=None)
def test_no_document_is_so_odd_that_it_cannot_be_listed(document):
    before = copy.deepcopy(document)
    job = MPIJob._from_document(document)
    assert job._repr_html_()
    assert repr(job)
    assert isinstance(job.status_detail, str)
    assert document == before


plain_texts = st.text(st.characters(codec="ascii", exclude_characters="\x00"), max_size=10)
described = st.fixed_dictionaries(
    {"name": st.from_regex(r"[a-z]([-a-z0-9]{0,20}[a-z0-9])?", fullmatch=True), "image": st.just("mpi")},
    optional={
        "workers": st.integers(2, 100),
        "command": st.lists(plain_texts, min_size=1, max_size=4),
        "args": st.lists(plain_texts, min_size=1, max_size=4),
        "env": st.dictionaries(st.from_regex(r"[A-Z_]{1,8}", fullmatch=True), plain_texts, min_size=1, max_size=3),
        "node_selector": st.dictionaries(plain_texts.filter(bool), plain_texts, min_size=1, max_size=2),
        "slots_per_worker": st.integers(1, 8),
        "clean_pod_policy": st.sampled_from(["Running", "All", "None"]),
        "active_deadline_seconds": st.integers(1, 10**6),
        "backoff_limit": st.integers(0, 20),
        "ttl_seconds_after_finished": st.integers(0, 10**6),
        "labels": st.dictionaries(plain_texts.filter(bool), plain_texts, min_size=1, max_size=2),
        "resources": st.builds(
            ResourceRequirements,
            cpu=st.integers(1, 64),
            memory=st.sampled_from(["1Gi", "512M"]),
            gpu=st.integers(0, 16),
        ),
    },
)


@given(described)
@settings(deadline=None)
def test_every_job_that_can_be_described_comes_back_from_its_yaml(values):
    job = MPIJob(**values)
    again = MPIJob.from_yaml(job.to_yaml())
    assert again._values() == job._values()
    assert again.to_dict() == job.to_dict()


def test_what_is_set_on_a_foreign_job_is_checked_and_the_rest_of_it_is_not():
    job = MPIJob.from_yaml(FOREIGN)
    job.slots_per_worker = 9
    with pytest.raises(ValueError, match="slots_per_worker is 9, expected a whole number from 1 to 8"):
        job.to_yaml()


def test_variables_that_one_role_has_for_itself_stay():
    document = load_document(FOREIGN)
    launcher = document["spec"]["mpiReplicaSpecs"]["Launcher"]["template"]["spec"]["containers"][0]
    launcher["env"] = [{"name": "OWN", "value": "1"}, {"name": "PLAIN", "value": "another"}]
    job = MPIJob.from_yaml(json.dumps(document))
    job.env = {**(job.env or {}), "MORE": "2"}
    changed = job.to_dict()["spec"]["mpiReplicaSpecs"]["Launcher"]["template"]["spec"]["containers"][0]["env"]
    assert changed == [*launcher["env"], {"name": "MORE", "value": "2"}]
    job.env = None
    changed = job.to_dict()["spec"]["mpiReplicaSpecs"]["Launcher"]["template"]["spec"]["containers"][0]["env"]
    assert changed == launcher["env"][:1]


@pytest.mark.parametrize("more", ["x: &a {y: *a}", BOMB])
def test_aliases_without_an_end_are_refused(more):
    with pytest.raises(ValueError, match="has aliases that make it endless"):
        MPIJob.from_yaml(f"{FOREIGN}\n{more}\n")


def test_where_another_job_ran_is_not_said_of_a_new_one():
    document = load_document(FOREIGN)
    document["metadata"]["annotations"] = {"tessera.io/ranks-ran-on": "{}"}
    job = MPIJob._from_document(document)
    assert job.annotations is None
    assert "annotations" not in job.to_dict()["metadata"]


def test_numbers_and_truths_without_quotes_can_be_shown():
    document = load_document(FOREIGN)
    replicas = document["spec"]["mpiReplicaSpecs"]
    replicas["Launcher"]["template"]["spec"]["containers"][0]["args"] = ["-n", 2]
    replicas["Worker"]["template"]["spec"]["containers"][0]["env"] = [{"name": "A", "value": False}]
    job = MPIJob._from_document(document)
    assert "mpirun -n 2" in job._repr_html_()
    assert job.env == {"A": "false"}


@pytest.mark.parametrize("text", ["a\n\x85b", "a\n\u2028b", "a\r\nb", "\ufeffa\nb"])
def test_breaks_of_other_kinds_stay_what_they_are(text):
    assert load_document(dump_document({"key": text, text: "value"})) == {"key": text, text: "value"}


@pytest.mark.parametrize(
    "value", ["!!binary aGk=", "!!timestamp 2026-01-01", "!!set {a, b}", "!!bool no way", "!!int ''"]
)
def test_what_json_cannot_say_is_refused_in_a_sentence(value):
    with pytest.raises(ValueError, match="the YAML cannot be read"):
        MPIJob.from_yaml(f"{FOREIGN}\nsomething: {value}\n")


def test_resources_that_are_set_leave_alone_what_they_do_not_speak_of():
    document = load_document(FOREIGN)
    worker = document["spec"]["mpiReplicaSpecs"]["Worker"]["template"]["spec"]["containers"][0]
    others = {"rdma/hca": 1, "amd.com/gpu": 2, "ephemeral-storage": "5Gi"}
    worker["resources"] = {"limits": {"cpu": 1, "memory": "1Gi", **others}, "claims": [{"name": "nic"}]}
    job = MPIJob._from_document(document)
    job.resources = ResourceRequirements(cpu=2, memory="2Gi", gpu=1)
    ours = {"cpu": "2", "memory": "2Gi", "nvidia.com/gpu": "1"}
    changed = job.to_dict()["spec"]["mpiReplicaSpecs"]["Worker"]["template"]["spec"]["containers"][0]["resources"]
    assert changed == {"requests": ours, "limits": {**ours, **others}, "claims": [{"name": "nic"}]}
    job.resources = None
    changed = job.to_dict()["spec"]["mpiReplicaSpecs"]["Worker"]["template"]["spec"]["containers"][0]["resources"]
    assert changed == {"limits": others, "claims": [{"name": "nic"}]}


def test_a_launcher_that_is_alone_gets_all_of_the_resources_and_no_worker():
    document = load_document(FOREIGN)
    del document["spec"]["mpiReplicaSpecs"]["Worker"]
    job = MPIJob._from_document(document)
    job.resources = ResourceRequirements(cpu=8, memory="32Gi", gpu=1)
    replicas = job.to_dict()["spec"]["mpiReplicaSpecs"]
    assert list(replicas) == ["Launcher"]
    limits = replicas["Launcher"]["template"]["spec"]["containers"][0]["resources"]["limits"]
    assert limits == {"cpu": "8", "memory": "32Gi", "nvidia.com/gpu": "1"}
    assert MPIJob._from_document(job.to_dict()).resources == job.resources


def test_a_job_that_is_given_another_name_is_not_in_the_gang_of_the_first():
    first = MPIJob("first", workers=4, image="mpi", resources=ResourceRequirements(gpu=1))
    second = MPIJob.from_yaml(first.to_yaml())
    second.name = "second"
    assert gang_of(second.to_dict()) == {"gpu.scheduling/gang": "second", "gpu.scheduling/gang-size": "4"}
    shared = first.to_dict()
    gang_of(shared)["gpu.scheduling/gang"] = "everybody"
    third = MPIJob._from_document(shared)
    third.name = "third"
    assert gang_of(third.to_dict())["gpu.scheduling/gang"] == "everybody"


def gang_of(document):
    return document["spec"]["mpiReplicaSpecs"]["Worker"]["template"]["metadata"]["annotations"]


def test_a_job_that_the_server_will_name_is_in_no_gang_without_a_name():
    document = load_document(FOREIGN)
    document["metadata"] = {"generateName": "pi-"}
    job = MPIJob._from_document(document)
    job.resources = ResourceRequirements(gpu=1)
    assert "metadata" not in job.to_dict()["spec"]["mpiReplicaSpecs"]["Worker"]["template"]
