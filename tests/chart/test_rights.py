"""What the chart's service accounts can do, found out by trying it with their tokens on a real API server.

RBAC and the policy `hami-agents` stand one behind the other. What RBAC refuses never reaches the policy, so the last
tests give the agent every right and look at the policy alone.
"""

import json
from collections.abc import Iterator

import pytest

from testbed.cluster import Cluster
from testbed.requirements import TestbedFailed
from tests.admission.waiting import eventually
from tests.chart.conftest import install
from tests.chart.users import User, user_of

ACCOUNT = "system:serviceaccount:kube-system:hami-device-plugin"
REGISTER, HANDSHAKE = "hami.io/node-nvidia-register", "hami.io/node-handshake-nvidia"
OWN, OTHER = "gpu-07", "gpu-08"
ONLY_ITS_OWN = "expected an agent to write its own node and no other"
ONLY_ITS_WORDS = "expected an agent to write its register, its handshake, its links and the label gpu alone"
LEADERS_LEASE = {"name": "hami-scheduler", "namespace": "kube-system"}
ONLY_ITS_LEASE = "expected tessera-agent-<node> in kube-system that speaks for that node"


@pytest.fixture(scope="module")
def cluster(bare_cluster: Cluster) -> Iterator[Cluster]:
    """With the chart installed, two nodes and a pod on each."""
    install(bare_cluster)
    objects = [{"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "default"}}]
    for node in (OWN, OTHER):
        metadata = {"name": node, "annotations": {"others": "note"}, "labels": {"zone": "a"}}
        objects.append({"apiVersion": "v1", "kind": "Node", "metadata": metadata})
        spec = {"nodeName": node, "containers": [{"name": "train", "image": "none"}]}
        objects.append({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": f"on-{node}"}, "spec": spec})
    bare_cluster.kubectl("apply", "-f", "-", input=json.dumps({"apiVersion": "v1", "kind": "List", "items": objects}))
    agent = user_of(bare_cluster, "hami-device-plugin", node=OWN)
    canary = ("annotate", "node", OTHER, "tessera.io/canary=1", "--dry-run=server")
    eventually(lambda: ONLY_ITS_OWN in says(agent, *canary))
    yield bare_cluster
    bare_cluster.helm("uninstall", "gpu-scheduler")
    bare_cluster.kubectl("delete", "--all", "gpuclaims,gpunodestatuses")
    bare_cluster.kubectl("delete", "node", OWN, OTHER)
    bare_cluster.kubectl("delete", "pod", "--all", "--force")


def says(user: User, *arguments: str) -> str:
    """What is printed, or what the API server said against it."""
    try:
        return user.do(*arguments)
    except TestbedFailed as error:
        return str(error)


@pytest.fixture(scope="module")
def agent(cluster: Cluster) -> User:
    return user_of(cluster, "hami-device-plugin", node=OWN)


@pytest.fixture(scope="module")
def scheduler(cluster: Cluster) -> User:
    return user_of(cluster, "hami-scheduler")


@pytest.fixture(scope="module")
def operator(cluster: Cluster) -> User:
    return user_of(cluster, "tessera-operator")


def lease(node: str, *, speaks_for: str = "", namespace: str = "kube-system") -> dict:
    metadata = {"name": f"tessera-agent-{node}", "namespace": namespace}
    annotations = {"tessera.io/node": speaks_for or node, "tessera.io/ended": "a,b"}
    return {
        "apiVersion": "coordination.k8s.io/v1",
        "kind": "Lease",
        "metadata": {**metadata, "labels": {"tessera.io/agent": node}, "annotations": annotations},
        "spec": {"holderIdentity": node},
    }


def test_an_agent_reports_on_its_own_node(agent):
    words = (f"{REGISTER}=GPU-a,10,81920,100,NVIDIA,0,true:", f"{HANDSHAKE}=Reported now", "tessera.io/inventory=[]")
    agent.do("annotate", "node", OWN, "hami.io/node-nvidia-score=[]", *words)
    agent.do("annotate", "node", OWN, f"{REGISTER}-", "tessera.io/inventory-")
    agent.do("label", "node", OWN, "gpu=on")
    agent.do("label", "node", OWN, "gpu-")


def test_an_agent_reports_on_no_other_node(agent):
    said = agent.refusal("annotate", "node", OTHER, f"{HANDSHAKE}=Reported now")
    assert said == f"nodes/{OTHER} is written by {ACCOUNT} of node {OWN}, {ONLY_ITS_OWN}"


@pytest.mark.parametrize(
    ("patch", "touched"),
    [
        ({"spec": {"unschedulable": True}}, "spec"),
        ({"spec": {"taints": [{"key": "a", "effect": "NoExecute"}]}}, "spec"),
        ({"metadata": {"labels": {"zone": "b"}}}, "zone"),
        ({"metadata": {"labels": {"zone": None}}}, "zone"),
        ({"metadata": {"labels": {"gpu-type": "a100"}}}, "gpu-type"),
        ({"metadata": {"annotations": {"others": None, HANDSHAKE: "Reported now"}}}, "others"),
        ({"metadata": {"annotations": {"hami.io/device-cordon": "GPU-a"}}}, "hami.io/device-cordon"),
        ({"metadata": {"finalizers": ["a.b/c"]}}, "metadata.finalizers"),
    ],
    ids=str,
)
def test_an_agent_changes_nothing_else_about_its_node(agent, patch, touched):
    said = agent.refusal("patch", "node", OWN, "--type=merge", f"--patch={json.dumps(patch)}")
    assert said == f"nodes/{OWN}: {touched} is written by {ACCOUNT} of node {OWN}, {ONLY_ITS_WORDS}"


def patch_status(condition: str, **more: object) -> list[str]:
    at = "2025-01-01T00:00:00Z"
    said = {"type": condition, "status": "False", "lastHeartbeatTime": at, "lastTransitionTime": at}
    patch = json.dumps({"status": {"conditions": [said], **more}})
    return ["patch", "node", OWN, "--subresource=status", "--type=strategic", f"--patch={patch}"]


def test_an_agent_tells_whether_its_node_binds_late_and_no_other_condition(agent):
    agent.do(*patch_status("TesseraLateBinding"))
    assert "status.conditions" in agent.refusal(*patch_status("Ready"))
    assert "status.capacity" in agent.refusal(*patch_status("TesseraLateBinding", capacity={"nvidia.com/gpu": "99"}))


def test_an_agent_keeps_its_own_lease(agent):
    agent.do("create", "-f", "-", input=lease(OWN))
    renewed = json.dumps({"spec": {"renewTime": "2025-01-01T00:00:00.000000Z"}})
    agent.do("patch", "lease", f"tessera-agent-{OWN}", "--namespace=kube-system", "--type=merge", f"--patch={renewed}")


@pytest.mark.parametrize(
    "forged", [lease(OTHER), lease(OTHER, speaks_for=OWN), lease(OWN, speaks_for=OTHER), lease(f"{OWN}0")], ids=str
)
def test_an_agent_speaks_for_no_other_node(cluster, agent, forged):
    cluster.kubectl("delete", "lease", "--namespace=kube-system", "--ignore-not-found", f"tessera-agent-{OWN}")
    said = agent.refusal("create", "-f", "-", input=forged)
    assert said == f"leases/{forged['metadata']['name']} is written by {ACCOUNT} of node {OWN}, {ONLY_ITS_LEASE}"


def test_an_agent_takes_over_no_lease_of_another(cluster, agent):
    cluster.kubectl("apply", "-f", "-", input=json.dumps(lease(OTHER)))
    silenced = json.dumps({"metadata": {"annotations": {"tessera.io/ended": "c"}}})
    arguments = ("patch", "lease", f"tessera-agent-{OTHER}", "--namespace=kube-system", "--type=merge")
    assert ONLY_ITS_LEASE in agent.refusal(*arguments, f"--patch={silenced}")
    leads = json.dumps({"spec": {"holderIdentity": "me"}})
    cluster.kubectl("create", "-f", "-", input=json.dumps(lease(OTHER) | {"metadata": LEADERS_LEASE}))
    leader = ("patch", "lease", "hami-scheduler", "--namespace=kube-system", "--type=merge", f"--patch={leads}")
    assert ONLY_ITS_LEASE in agent.refusal(*leader)


@pytest.mark.parametrize("node", [OWN, OTHER])
def test_an_agent_reads_pods_and_writes_none(agent, node):
    assert f"on-{node}" in agent.do("get", "pods", "-o", "name")
    said = agent.refusal("annotate", "pod", f"on-{node}", "hami.io/bind-phase=success")
    assert 'cannot patch resource "pods"' in said


@pytest.mark.parametrize(
    "arguments",
    [
        ("delete", "node", OWN),
        ("delete", "pod", f"on-{OWN}"),
        ("get", "secrets", "--namespace=kube-system"),
        ("get", "configmaps", "--namespace=kube-system"),
        ("delete", "lease", f"tessera-agent-{OWN}", "--namespace=kube-system"),
    ],
    ids=" ".join,
)
def test_an_agent_has_no_other_right(agent, arguments):
    assert "cannot" in agent.refusal(*arguments)


def test_a_token_that_names_no_node_is_of_no_use(cluster):
    nobody = user_of(cluster, "hami-device-plugin")
    assert ONLY_ITS_OWN in nobody.refusal("annotate", "node", OWN, f"{HANDSHAKE}=Reported now")
    assert ONLY_ITS_LEASE in nobody.refusal("create", "-f", "-", input=lease(OWN))


def test_the_scheduler_reads_what_it_decides_by(scheduler):
    for resource in ("pods", "nodes", "resourcequotas", "persistentvolumes", "storageclasses"):
        scheduler.do("get", resource, "--all-namespaces")
    scheduler.do("get", "leases", "--namespace=kube-system")
    scheduler.do("get", "secret", "hami-scheduler-tls", "--namespace=kube-system")


def test_the_scheduler_writes_allocations_and_its_own_authority(scheduler):
    scheduler.do("annotate", "pod", f"on-{OWN}", "hami.io/vgpu-node=gpu-07")
    scheduler.do("annotate", "mutatingwebhookconfiguration", "hami-webhook", "a=b")


@pytest.mark.parametrize(
    "arguments",
    [
        ("annotate", "node", OWN, "a=b"),
        ("get", "secrets", "--namespace=kube-system"),
        ("get", "mutatingwebhookconfigurations"),
        ("annotate", "validatingadmissionpolicy", "hami-agents", "a=b"),
        ("get", "configmap", "hami-scheduler", "--namespace=kube-system"),
        ("create", "secret", "generic", "another", "--namespace=kube-system"),
        ("delete", "lease", f"tessera-agent-{OTHER}", "--namespace=kube-system"),
        ("annotate", "lease", f"tessera-agent-{OTHER}", "a=b", "--namespace=kube-system"),
    ],
    ids=" ".join,
)
def test_the_scheduler_has_no_other_right(scheduler, arguments):
    assert "cannot" in scheduler.refusal(*arguments)


CLAIM = {"apiVersion": "gpu.scheduling/v1", "kind": "GpuClaim", "metadata": {"name": "training"}}
CARD_LEASE = {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": {"name": "gpu-gpu-07-0"}}


@pytest.fixture(scope="module")
def claim(cluster: Cluster) -> str:
    body = CLAIM | {"spec": {"devices": {"count": 1}}}
    eventually(lambda: "gpuclaims.gpu.scheduling" in cluster.kubectl("api-resources", "-o", "name"))
    cluster.kubectl("apply", "-f", "-", input=json.dumps(body))
    return "training"


def test_the_scheduler_reads_claims_and_leases_cards(scheduler, claim):
    for resource in ("gpuclaims", "gpugangs"):
        scheduler.do("get", resource, "--all-namespaces")
    scheduler.do("create", "-f", "-", input=CARD_LEASE)
    scheduler.do("replace", "-f", "-", input=CARD_LEASE | {"spec": {"holderIdentity": "uid"}})
    scheduler.do("delete", "lease", "gpu-gpu-07-0")
    assert "cannot" in scheduler.refusal("annotate", "gclaim", claim, "a=b")


@pytest.mark.usefixtures("claim")
def test_the_operator_tells_on_claims_what_became_of_them(operator):
    for resource in ("gpuclaims", "gpugangs", "pods"):
        operator.do("get", resource, "--all-namespaces")
    operator.do("get", "leases")
    told = CLAIM | {"status": {"phase": "Pending"}}
    operator.do("apply", "--server-side", "--subresource=status", "-f", "-", input=told)


@pytest.mark.parametrize(
    "arguments",
    [
        ("annotate", "gclaim", "training", "a=b"),
        ("delete", "gclaim", "training"),
        ("annotate", "node", OWN, "a=b"),
        ("get", "secrets", "--namespace=kube-system"),
        ("get", "leases", "--namespace=kube-system"),
        ("annotate", "pod", f"on-{OWN}", "a=b"),
        ("delete", "statefulset", "demo"),
        ("delete", "service", "kubernetes"),
        ("delete", "compute", "demo"),
        ("create", "configmap", "another"),
        ("create", "deployment", "another", "--image=none"),
    ],
    ids=" ".join,
)
@pytest.mark.usefixtures("claim", "compute")
def test_the_operator_has_no_other_right(operator, arguments):
    assert "cannot" in operator.refusal(*arguments)


COMPUTE = {"apiVersion": "compute.kpu.dev/v1alpha1", "kind": "Compute", "metadata": {"name": "demo"}}


@pytest.fixture(scope="module")
def compute(cluster: Cluster) -> Iterator[str]:
    eventually(lambda: "computes.compute.kpu.dev" in cluster.kubectl("api-resources", "-o", "name"))
    cluster.kubectl("apply", "-f", "-", input=json.dumps(COMPUTE | {"spec": {"suspend": True}}))
    yield "demo"
    cluster.kubectl("delete", "compute/demo", "statefulset/demo", "secret/demo-token", "--ignore-not-found")


@pytest.mark.usefixtures("compute")
def test_the_operator_makes_for_a_compute_what_it_needs(operator):
    for resource in ("computes", "statefulsets", "services", "pods", "events", "nodes"):
        operator.do("get", resource)
    labels = {"app": "demo"}
    spec = {
        "serviceName": "demo",
        "replicas": 0,
        "selector": {"matchLabels": labels},
        "template": {"metadata": {"labels": labels}, "spec": {"containers": [{"name": "server", "image": "none"}]}},
    }
    made = {"apiVersion": "apps/v1", "kind": "StatefulSet", "metadata": {"name": "demo"}, "spec": spec}
    operator.do("apply", "--server-side", "-f", "-", input=made)
    operator.do("create", "secret", "generic", "demo-token", "--from-literal=token=a")
    operator.do("get", "secret", "demo-token")
    assert "cannot" in operator.refusal("annotate", "secret", "demo-token", "a=b")
    told = COMPUTE | {"status": {"observedGeneration": 1}}
    operator.do("apply", "--server-side", "--subresource=status", "-f", "-", input=told)
    operator.do("patch", "compute", "demo", "--type=merge", '--patch={"metadata":{"finalizers":[]}}')


def test_the_operator_leases_no_card(operator):
    assert "cannot" in operator.refusal("create", "-f", "-", input=CARD_LEASE)


@pytest.mark.usefixtures("claim")
def test_an_agent_tells_of_its_own_nodes_cards_and_of_no_others(agent):
    def told(node: str) -> dict:
        head = {"apiVersion": "gpu.scheduling/v1", "kind": "GpuNodeStatus", "metadata": {"name": node}}
        return head | {"spec": {"nodeName": node}}

    agent.do("apply", "--server-side", "-f", "-", input=told(OWN))
    cards = told(OWN) | {"status": {"total": 0}}
    agent.do("apply", "--server-side", "--subresource=status", "--field-manager=status", "-f", "-", input=cards)
    said = agent.refusal("apply", "--server-side", "-f", "-", input=told(OTHER))
    assert "expected an agent to write the one that is named like its own node" in said


@pytest.fixture(scope="module")
def mighty(cluster: Cluster) -> Iterator[User]:
    """An agent that RBAC lets do everything."""
    account = "--serviceaccount=kube-system:hami-device-plugin"
    cluster.kubectl("create", "clusterrolebinding", "everything", "--clusterrole=cluster-admin", account)
    agent = user_of(cluster, "hami-device-plugin", node=OWN)
    eventually(lambda: says(agent, "auth", "can-i", "get", "secrets").startswith("yes"))
    yield agent
    cluster.kubectl("delete", "clusterrolebinding", "everything")


def test_nodes_are_neither_made_nor_removed(mighty):
    node = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "gpu-09"}}
    assert ONLY_ITS_OWN in mighty.refusal("create", "-f", "-", input=node)
    assert ONLY_ITS_OWN in mighty.refusal("delete", "node", OWN)


def test_pods_of_other_nodes_are_out_of_reach(mighty):
    said = mighty.refusal("annotate", "pod", f"on-{OTHER}", "a=b")
    expected = "expected an agent to leave pods alone, but for notes on its own node's"
    assert said == f"pods/on-{OTHER} is written by {ACCOUNT} of node {OWN}, {expected}"


def test_pods_of_its_own_node_can_be_given_notes_and_nothing_else(mighty):
    mighty.do("annotate", "pod", f"on-{OWN}", "hami.io/bind-phase=success")
    image = json.dumps({"spec": {"containers": [{"name": "train", "image": "other"}]}})
    for change in (("patch", "pod", f"on-{OWN}", f"--patch={image}"), ("delete", "pod", f"on-{OWN}")):
        assert "expected an agent to leave pods alone" in mighty.refusal(*change)


def test_no_pod_is_made_evicted_or_bound(mighty):
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "forged"}}
    spec = {"nodeName": OWN, "containers": [{"name": "a", "image": "none"}]}
    assert mighty.refusal("create", "-f", "-", input=pod | {"spec": spec})
    eviction = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": f"on-{OTHER}"}}
    path = f"/api/v1/namespaces/default/pods/on-{OTHER}/eviction"
    assert mighty.refusal("create", "--raw", path, "-f", "-", input=eviction)


def test_its_lease_stays_in_kube_system(mighty):
    assert ONLY_ITS_LEASE in mighty.refusal("create", "-f", "-", input=lease(OWN, namespace="default"))
