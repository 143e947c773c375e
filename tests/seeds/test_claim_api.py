"""The samples of seed 3 about claims, on a cluster with our scheduler, webhook and operator.

Pods that the samples speak of and do not show are made here; so are the objects that its commands name.
"""

import json
import re
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import yaml

from tests.contract.waiting import eventually
from tests.seeds.claims import a_claim, a_pod, create, wait_until_bound
from tests.seeds.engines import NODE_NAMES
from tests.seeds.samples import Sample, samples_of
from tests.seeds.shell import Shell, commands_of

Document = dict[str, Any]
ALLOCATED = re.compile(rf"({'|'.join(NODE_NAMES)}):\d+(,\d+)*")


@pytest.fixture(scope="module")
def guide(seed: Callable[[int], str]) -> str:
    """Asked for before the cluster, which nobody needs without it."""
    return seed(3)


@pytest.fixture(scope="module")
def samples(guide: str) -> tuple[Sample, ...]:
    return samples_of(guide, "yaml")


@pytest.fixture(autouse=True)
def _nothing_stays(guide: str, shell: Shell) -> Iterator[None]:
    del guide
    yield
    claims = json.loads(shell.run("kubectl get gpuclaims -A -o json"))["items"]
    for namespace in {"default", *(claim["metadata"]["namespace"] for claim in claims)}:
        shell.run(f"kubectl delete pods,gpuclaims --all -n {namespace}")
    eventually(lambda: "gpu-" not in shell.run("kubectl get leases -o name"))


def of_kind(samples: tuple[Sample, ...], kind: str) -> list[str]:
    """Whole objects; the texts as they are written."""
    return [sample.text for sample in samples if yaml.safe_load(sample.text).get("kind") == kind]


def fragment_with(samples: tuple[Sample, ...], field: str) -> Document:
    """A part of a pod, which has no kind."""
    parts = [yaml.safe_load(sample.text) for sample in samples]
    (found,) = [part for part in parts if "kind" not in part and field in part]
    return found


def test_every_yaml_sample_is_run(samples):
    assert len(samples) == 8, "a sample was added or removed: give it a test here or beside this file"


def test_every_claim_is_bound_as_it_asks(samples, shell):
    shell.run("kubectl label nodes --all --overwrite gpu-type=a100 nvlink=true")
    claims = of_kind(samples, "GpuClaim")
    assert len(claims) == 3
    for text in claims:
        claim = yaml.safe_load(text)
        name, namespace = claim["metadata"]["name"], claim["metadata"].get("namespace", "default")
        shell.run(f"kubectl create namespace {namespace} --dry-run=client -o yaml | kubectl apply -f -")
        shell.run("kubectl apply -f -", input=text)
        create(shell, a_pod(name, namespace, annotations={"gpu.scheduling/claim": name}))
        check_cards(claim["spec"]["devices"], wait_until_bound(shell, name, namespace))


def check_cards(devices: Document, status: Document) -> None:
    ids = status["gpuIds"]
    assert len(ids) == devices["count"]
    assert status["allocated"] == f"{status['nodeName']}:{','.join(map(str, ids))}"
    if devices.get("policy") == "contiguous":
        assert ids == list(range(ids[0], ids[0] + len(ids)))
    assert ids == devices.get("preferIds", ids)


def test_the_status_of_a_node_is_taken_whole(samples, shell):
    """As its author writes it, and as the agent does: the status apart."""
    (text,) = of_kind(samples, "GpuNodeStatus")
    shell.run("kubectl apply -f -", input=text)
    agent = "kubectl apply --server-side --force-conflicts --subresource=status --dry-run=server -o json -f -"
    taken = json.loads(shell.run(agent, input=text))
    assert taken["spec"] == yaml.safe_load(text)["spec"]
    assert taken["status"] == yaml.safe_load(text)["status"]


def test_a_lease_can_be_made_by_hand(samples, shell):
    (text,) = of_kind(samples, "Lease")
    made = json.loads(shell.run("kubectl apply -o json -f -", input=text))
    assert made["spec"] == yaml.safe_load(text)["spec"]
    shell.run("kubectl delete --ignore-not-found -f -", input=text)


def test_a_pod_is_linked_to_its_claim_and_told_its_cards(samples, shell):
    metadata = fragment_with(samples, "metadata")["metadata"]
    create(shell, a_pod("linked", annotations=metadata["annotations"]))
    (claim,) = metadata["annotations"].values()
    create(shell, a_claim(claim))
    allocated = wait_until_bound(shell, claim)["allocated"]
    assert ALLOCATED.fullmatch(allocated)
    pod = json.loads(shell.run("kubectl get pod linked -o json"))
    assert pod["metadata"]["annotations"]["gpu.scheduling/allocated"] == allocated


def test_every_container_of_a_pod_with_cards_is_given_the_variable(samples, shell):
    containers = fragment_with(samples, "containers")["containers"]
    bare = [{"name": container["name"], "image": "busybox"} for container in containers]
    ((variable,),) = [container["env"] for container in containers]
    pin = {"gpu.scheduling/allocated": f"{NODE_NAMES[0]}:{variable['value']}"}
    pod = a_pod("pinned", annotations=pin, containers=bare, initContainers=[{"name": "first", "image": "busybox"}])
    made = json.loads(shell.run("kubectl create --dry-run=server -o json -f -", input=pod))
    given = [one["env"] for one in (*made["spec"]["containers"], *made["spec"]["initContainers"])]
    assert given == [[variable]] * len(given)


def test_every_kubectl_command_shows_something(guide, samples, shell):
    """On a claim, a node and a lease of the names that they use."""
    commands = [line for one in samples_of(guide, "bash") for line in commands_of(one) if line.startswith("kubectl")]
    assert len(commands) == 10, "a command was added or removed: see that it has what it needs"
    shell.run("kubectl apply -f -", input=of_kind(samples, "GpuNodeStatus")[0])
    create(shell, a_claim("my-claim"))
    pinned = {"gpu.scheduling/claim": "my-claim", "gpu.scheduling/allocated": "node-a:0"}
    create(shell, a_pod("holder", annotations=pinned))
    wait_until_bound(shell, "my-claim")
    for command in commands:
        if "-w" in command.split():
            shell.run_until(command, "my-claim")
        else:
            assert shell.run(command).strip(), f"`{command}` printed nothing"
    eventually(lambda: "gpu-node-a-0" in shell.run("kubectl get leases"))
