"""Our kinds as people use them: by kubectl, on an API server of each engine."""

import json
from typing import Any

import pytest
import yaml

from tests.contract.command_line import CommandLine
from tests.operators.conftest import Engine
from tests.seeds.samples import find_seed, samples_of, seeds_directory

Document = dict[str, Any]


def a_claim(name: str = "my-claim", **spec: Any) -> Document:
    spec = {"devices": {"count": 1}, **spec}
    return {"apiVersion": "gpu.scheduling/v1", "kind": "GpuClaim", "metadata": {"name": name}, "spec": spec}


def apply(kubectl: CommandLine, document: Document) -> None:
    kubectl("apply", "-f", "-", input=json.dumps(document))


def tell(kubectl: CommandLine, name: str, status: Document) -> None:
    patch = json.dumps({"status": status})
    kubectl("patch", "gpuclaim", name, "--subresource=status", "--type=merge", f"--patch={patch}")


def test_claims_are_listed_described_and_read_by_every_name(kubectl: CommandLine):
    apply(kubectl, a_claim(devices={"count": 2, "policy": "contiguous"}, topology={"mode": "Required"}))
    tell(kubectl, "my-claim", {"phase": "Bound", "allocated": "node-a:0,1", "podName": "web", "message": "done"})
    for name in ("gpuclaim", "gpuclaims", "gclaim"):
        heading, row = kubectl("get", name).splitlines()
        assert heading.split() == ["NAME", "COUNT", "POLICY", "PHASE", "ALLOCATED", "AGE"]
        assert row.split()[:5] == ["my-claim", "2", "contiguous", "Bound", "node-a:0,1"]
    wide = kubectl("get", "gclaim", "-o", "wide").splitlines()
    assert wide[0].split()[5:9] == ["EXCLUSIVITY", "TOPOLOGY", "POD", "MESSAGE"]
    assert wide[1].split()[5:9] == ["Exclusive", "Required", "web", "done"]
    assert "Allocated:  node-a:0,1" in kubectl("describe", "gpuclaim", "my-claim")
    status = json.loads(kubectl("get", "gpuclaim", "my-claim", "-o", "jsonpath={.status}"))
    assert status["phase"] == "Bound"


def test_claims_can_be_watched(kubectl: CommandLine):
    apply(kubectl, a_claim())
    with kubectl.running("get", "gclaim", "-w", "--no-headers") as lines:
        assert lines.readline().split()[:2] == ["my-claim", "1"]
        tell(kubectl, "my-claim", {"phase": "Pending"})
        assert lines.readline().split()[2] == "Pending"


def test_what_is_left_open_is_filled_in(kubectl: CommandLine):
    apply(kubectl, a_claim(topology={"minBandwidthGBps": 600}))
    spec = json.loads(kubectl("get", "gclaim", "my-claim", "-o", "json"))["spec"]
    assert spec == {
        "devices": {"count": 1, "exclusivity": "Exclusive"},
        "topology": {"mode": "Preferred", "minBandwidthGBps": 600},
    }


PREFERS = {"count": 2, "policy": "preferIds"}


@pytest.mark.parametrize(
    ("spec", "complaint"),
    [
        ({"devices": {}}, "spec.devices.count: Required value"),
        ({"devices": {"count": 0}}, "spec.devices.count in body should be greater than or equal to 1"),
        ({"devices": {"count": 1, "policy": "packed"}}, 'supported values: "contiguous", "spread", "preferIds"'),
        ({"devices": {"count": 1, "exclusivity": "shared"}}, 'supported values: "Exclusive", "Shared", "MIG"'),
        ({"topology": {"mode": "Maybe"}}, 'supported values: "Required", "Preferred", "Ignore"'),
        ({"topology": {"minBandwidthGBps": -1}}, "should be greater than or equal to 0"),
        ({"gangRef": "Not A Name"}, "spec.gangRef in body should match"),
        ({"devices": PREFERS}, "policy is preferIds and preferIds is empty, expected the ids of the GPUs to prefer"),
        ({"devices": {**PREFERS, "preferIds": []}}, "policy is preferIds and preferIds is empty"),
        ({"devices": {**PREFERS, "preferIds": [1, 2, 1]}}, "preferIds names a GPU twice, expected each id once"),
        ({"devices": {**PREFERS, "preferIds": [-1]}}, "spec.devices.preferIds[0] in body should be greater"),
        ({"devices": {"count": 1, "preferIds": [0]}}, "preferIds is only for the policy preferIds"),
        (
            {"devices": {"count": 2, "policy": "spread"}, "topology": {"mode": "Required"}},
            "devices.policy is spread and topology.mode is Required, which contradict each other",
        ),
    ],
    ids=str,
)
def test_a_claim_that_contradicts_itself_is_refused_with_a_sentence(
    kubectl: CommandLine, spec: Document, complaint: str
):
    assert complaint in kubectl.refusal("apply", "-f", "-", input=json.dumps(a_claim(**spec)))


@pytest.mark.parametrize(
    "spec",
    [
        {"devices": {**PREFERS, "preferIds": [0]}},
        {"devices": {**PREFERS, "preferIds": [5, 4, 3]}},
        {"devices": {"count": 1, "policy": "spread"}, "topology": {"mode": "Required"}},
        {"devices": {"count": 2, "policy": "spread"}, "topology": {"mode": "Preferred"}},
        {"devices": {"count": 1, "exclusivity": "MIG"}},
        {"gangRef": "training-job-123"},
    ],
    ids=str,
)
def test_a_claim_that_only_looks_odd_is_taken(kubectl: CommandLine, spec: Document):
    apply(kubectl, a_claim(**spec))


@pytest.mark.parametrize(("phase", "is_fixed"), [("Pending", False), ("Reserved", True), ("Bound", True)])
def test_the_spec_is_fixed_while_the_claim_has_cards(kubectl: CommandLine, phase: str, is_fixed: bool):
    apply(kubectl, a_claim())
    tell(kubectl, "my-claim", {"phase": phase})
    change = ("patch", "gclaim", "my-claim", "--type=merge", '--patch={"spec":{"devices":{"count":2}}}')
    if is_fixed:
        said = kubectl.refusal(*change)
        assert f"spec: Forbidden: spec cannot be changed while the claim is {phase}; delete the pod" in said
    else:
        kubectl(*change)
    kubectl("label", "gclaim", "my-claim", "a=b")


def test_the_status_of_a_claim_is_not_the_users_to_write(kubectl: CommandLine):
    apply(kubectl, a_claim() | {"status": {"phase": "Bound", "allocated": "node-a:0"}})
    assert kubectl("get", "gclaim", "my-claim", "-o", "jsonpath={.status}") == ""


def test_a_gang_needs_at_least_one_member(kubectl: CommandLine):
    gang = {"apiVersion": "gpu.scheduling/v1", "kind": "GpuGang", "metadata": {"name": "pair"}}
    said = kubectl.refusal("apply", "-f", "-", input=json.dumps(gang | {"spec": {"minMember": 0}}))
    assert "spec.minMember in body should be greater than or equal to 1" in said
    apply(kubectl, gang | {"spec": {"minMember": 2}})
    heading, row = kubectl("get", "ggang").splitlines()
    assert heading.split() == ["NAME", "MINMEMBER", "MEMBERS", "BOUND", "PHASE", "AGE"]
    assert row.split()[:2] == ["pair", "2"]


def test_a_node_status_keeps_its_devices_by_id_and_knows_three_words_for_health(engine: Engine):
    kubectl = engine.kubectl
    status = {"apiVersion": "gpu.scheduling/v1", "kind": "GpuNodeStatus", "metadata": {"name": "node-x"}}
    apply(kubectl, status | {"spec": {"nodeName": "node-x"}})
    devices = [{"id": 0, "health": "Healthy", "island": "nvlink-group-0", "bandwidthGBps": 600, "inUseBy": ["uid"]}]

    def patch(**more: Any) -> tuple[str, ...]:
        told = json.dumps({"status": {"total": 1, "devices": [devices[0] | more]}})
        return ("patch", "gns", "node-x", "--subresource=status", "--type=merge", f"--patch={told}")

    kubectl(*patch())
    assert kubectl("get", "gns", "node-x", "--no-headers").split()[:3] == ["node-x", "node-x", "1"]
    assert yaml.safe_load(kubectl("get", "gns", "node-x", "-o", "yaml"))["status"]["devices"] == devices
    assert 'supported values: "Healthy", "Unhealthy", "Unknown"' in kubectl.refusal(*patch(health="Other"))
    kubectl("delete", "gns", "node-x")


def test_every_document_of_the_seed_is_taken_as_written(engine: Engine):
    seed = find_seed(3)
    if seed is None:
        pytest.skip(f"seed 3 is not in {seeds_directory()}: its samples are not tested; set TESSERA_SEEDS")
    samples = [sample.text for sample in samples_of(seed.read_text(encoding="utf-8"), "yaml")]
    documents = [text for text in samples if "apiVersion: gpu.scheduling/v1" in text]
    assert len(documents) == 4, "a sample was added or removed"
    for text in documents:
        namespace = yaml.safe_load(text)["metadata"].get("namespace", "default")
        kubectl = engine.kubectl.within(namespace)
        if f"namespace/{namespace}" not in kubectl("get", "namespaces", "-o", "name").split():
            kubectl("create", "namespace", namespace)
        kubectl("apply", "-f", "-", input=text)
        kubectl("delete", "-f", "-", input=text)
