"""The chart on a real node, by the real helm and from our own images: the commands of the documentation as written.

The tests are one story and run in its order: installed, given cards, used, upgraded, removed, installed again.
"""

import json
from collections.abc import Iterator
from typing import Any

import pytest

from tessera.vendors.guard import BUILT
from testbed.cluster import Cluster
from testbed.fixtures import NewCluster
from testbed.images.cache import default_cache
from testbed.images.recipes.busybox import REFERENCE as BUSYBOX
from testbed.images.recipes.kube_scheduler import kube_scheduler_image
from testbed.images.recipes.tessera import tessera_image
from tests.admission.waiting import eventually
from tests.chart.charts import Rendered, read
from tests.chart.users import user_of
from tests.repository.files import ROOT

pytestmark = [pytest.mark.timeout(400), pytest.mark.usefixtures("at_the_root")]
KUBE_SYSTEM = "--namespace=kube-system"
VERSIONS = (read("Chart.yaml")["appVersion"], "v0.2.0")
CARDS = 8


@pytest.fixture(scope="module")
def cluster(new_cluster: NewCluster) -> Iterator[Cluster]:
    """Its node has every image that the chart asks for, by the names that it asks for."""
    cluster = new_cluster(node=True)
    cluster.machine.run("mount", "-t", "tmpfs", "tmpfs", "/usr/local")  # the machine's own; the agent writes there
    tessera = tessera_image(ROOT, default_cache())
    kube_scheduler = kube_scheduler_image(cluster.programs["kube-scheduler"])
    cluster.load(tessera)
    cluster.load(kube_scheduler)
    wanted = Rendered(version=cluster.programs.version("kube-scheduler"))
    container = wanted.container("Deployment", "hami-scheduler", "kube-scheduler")
    cluster.node.runtime.ctr("images", "tag", kube_scheduler.reference, container["image"])
    for version in VERSIONS:
        cluster.node.runtime.ctr("images", "tag", tessera.reference, f"docker.io/library/tessera:{version}")
    yield cluster
    cluster.stop()


@pytest.fixture(scope="module")
def installed(cluster: Cluster) -> Cluster:
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(ROOT)
        cluster.helm("install", "gpu-scheduler", "charts/gpu-scheduler")
    wait_for_rollouts(cluster)
    return cluster


def wait_for_rollouts(cluster: Cluster) -> None:
    for workload in ("deployment/hami-scheduler", "deployment/tessera-operator", "daemonset/hami-device-plugin"):
        cluster.kubectl("rollout", "status", KUBE_SYSTEM, workload, "--timeout=110s")


def get(cluster: Cluster, *arguments: str) -> dict[str, Any]:
    return json.loads(cluster.kubectl("get", *arguments, "-o", "json"))


def our_pods(cluster: Cluster) -> list[dict[str, Any]]:
    selector = "--selector=app.kubernetes.io/part-of=tessera"
    pods = get(cluster, "pods", KUBE_SYSTEM, selector)["items"]
    return [pod for pod in pods if "deletionTimestamp" not in pod["metadata"]]


def authority(cluster: Cluster) -> str:
    hooks = get(cluster, "mutatingwebhookconfiguration", "hami-webhook")["webhooks"]
    (bundle,) = {hook["clientConfig"].get("caBundle", "") for hook in hooks}
    return bundle


def test_what_the_troubleshooting_guide_tells_to_type_shows_something(installed: Cluster):
    assert "cache filled" in installed.kubectl("logs", "-n", "kube-system", "deployment/hami-scheduler")
    names = installed.kubectl("get", "pods", "-n", "kube-system", "-o", "name").split()
    (plugin,) = [name for name in names if "device-plugin" in name]
    assert "cache filled" in installed.kubectl("logs", "-n", "kube-system", plugin)
    definitions = installed.kubectl("get", "crd", "-o", "name")
    assert {"gpuclaims", "gpugangs", "gpunodestatuses", "computes"} <= {
        name.partition("/")[2].partition(".")[0] for name in definitions.split()
    }


def test_both_schedulers_are_ready_and_one_of_them_leads(installed: Cluster):
    schedulers = [pod["metadata"]["name"] for pod in our_pods(installed) if "scheduler" in pod["metadata"]["name"]]
    assert len(schedulers) == 2

    installed.kubectl("wait", "--for=create", KUBE_SYSTEM, "lease/hami-scheduler", "--timeout=30s")

    def leader() -> str:
        lease = get(installed, "lease", "hami-scheduler", KUBE_SYSTEM)
        return lease["spec"].get("holderIdentity", "").partition("_")[0]

    eventually(lambda: leader() in schedulers)


def test_a_compute_is_made_told_of_and_let_go(installed: Cluster):
    """By an operator that has the rights of the chart and no others."""
    metadata = {"name": "demo", "finalizers": ["compute.kpu.dev/deletion"]}
    metadata |= {"annotations": {"compute.kpu.dev/deletion-grace-seconds": "1"}}
    spec = {"image": BUSYBOX, "command": ["sleep", "1000"], "resources": {"cpu": "10m", "memory": "16Mi"}}
    compute = {"apiVersion": "compute.kpu.dev/v1alpha1", "kind": "Compute", "metadata": metadata, "spec": spec}
    installed.kubectl("apply", "-f", "-", input=json.dumps(compute))
    path = 'jsonpath={.status.conditions[?(@.type=="Ready")].message}'
    eventually(lambda: "readiness probe" in installed.kubectl("get", "compute", "demo", "-o", path))
    assert get(installed, "secret", "demo-token")["data"]["token"]
    installed.kubectl("delete", "compute", "demo", "--timeout=30s")
    selector = "--selector=compute.kpu.dev/name=demo"
    eventually(lambda: not get(installed, "statefulsets,services,secrets,pods", selector)["items"])


def test_a_node_without_cards_has_an_agent_that_lives_and_reports_none(installed: Cluster):
    name = f"tessera-agent-{installed.node.name}"
    installed.kubectl("wait", "--for=create", KUBE_SYSTEM, f"lease/{name}", "--timeout=30s")
    lease = get(installed, "lease", name, KUBE_SYSTEM)
    assert lease["metadata"]["annotations"]["tessera.io/node"] == installed.node.name
    assert installed.kubectl("get", "nodes", "-l", "gpu=on", "-o", "name") == ""


def test_a_pod_passes_webhook_scheduler_and_device_plugin_and_sees_its_cards(installed: Cluster):
    before = authority(installed)
    simulate = f"devicePlugin.simulate={CARDS}xA100-SXM4-80GB"
    installed.helm("upgrade", "gpu-scheduler", "charts/gpu-scheduler", "--set", simulate)
    wait_for_rollouts(installed)
    assert before
    assert authority(installed) == before
    eventually(lambda: capacity(installed) >= CARDS)

    installed.kubectl("create", "-f", "-", input=json.dumps(a_pod("training-job")))
    installed.kubectl("wait", "--for=condition=Ready", "pod/training-job", "--timeout=90s")
    pod = get(installed, "pod", "training-job")
    given = pod["metadata"]["annotations"]["hami.io/vgpu-devices-allocated"].rstrip(";").rstrip(":").split(":")
    uuids = [card.split(",")[0] for card in given]
    environment = dict(line.split("=", 1) for line in installed.kubectl("logs", "training-job").splitlines())
    assert pod["spec"]["schedulerName"] == "hami-scheduler"
    assert len(set(uuids)) == 2
    assert environment["NVIDIA_VISIBLE_DEVICES"].split(",") == uuids
    assert environment["CUDA_DEVICE_MEMORY_LIMIT_1"] == "8000m"
    assert ("TESSERA_REGION" in environment) is BUILT.exists(), "the image has the library where it is built"
    register = get(installed, "node", installed.node.name)["metadata"]["annotations"]["hami.io/node-nvidia-register"]
    assert all(uuid in register for uuid in uuids)


def test_a_claim_is_told_what_became_of_it(installed: Cluster):
    devices = {"count": 1, "exclusivity": "MIG"}
    claim = {"apiVersion": "gpu.scheduling/v1", "kind": "GpuClaim", "metadata": {"name": "sliced"}}
    installed.kubectl("create", "-f", "-", input=json.dumps(claim | {"spec": {"devices": devices}}))
    installed.kubectl("wait", "--for=jsonpath={.status.phase}=Failed", "gclaim/sliced", "--timeout=60s")
    assert "MIG, which is not supported yet" in installed.kubectl("describe", "gclaim", "sliced")


def capacity(cluster: Cluster) -> int:
    return int(get(cluster, "node", cluster.node.name)["status"]["allocatable"].get("nvidia.com/gpu", 0))


def a_pod(name: str) -> dict[str, Any]:
    limits = {"nvidia.com/gpu": 2, "nvidia.com/gpumem": 8000, "nvidia.com/gpucores": 30}
    main = {"name": "main", "image": BUSYBOX, "imagePullPolicy": "Never", "resources": {"limits": limits}}
    command = {"command": ["sh", "-c", "env; exec sleep 100000"]}
    spec = {"terminationGracePeriodSeconds": 0, "containers": [main | command]}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": spec}


def test_nobody_lacked_a_right(installed: Cluster):
    for pod in our_pods(installed):
        name = pod["metadata"]["name"]
        said = installed.kubectl("logs", KUBE_SYSTEM, name, "--all-containers").lower()
        assert [line for line in said.splitlines() if "forbidden" in line or "denied" in line] == [], name


def test_the_agent_that_runs_is_kept_to_its_node(installed: Cluster):
    node = json.dumps({"apiVersion": "v1", "kind": "Node", "metadata": {"name": "elsewhere"}})
    installed.kubectl("create", "-f", "-", input=node)
    (pod,) = [pod["metadata"]["name"] for pod in our_pods(installed) if "device-plugin" in pod["metadata"]["name"]]
    agent = user_of(installed, "hami-device-plugin", pod=pod)
    agent.do("annotate", "node", installed.node.name, "tessera.io/canary=1", "--dry-run=server")
    said = agent.refusal("annotate", "node", "elsewhere", "tessera.io/canary=1", "--dry-run=server")
    installed.kubectl("delete", "node", "elsewhere")
    assert "expected an agent to write its own node and no other" in said


def test_the_release_can_be_upgraded_read_removed_and_installed_with_another_tag(installed: Cluster):
    installed.helm("upgrade", "gpu-scheduler", "charts/gpu-scheduler")
    assert f"simulate: {CARDS}xA100-SXM4-80GB" in installed.helm("get", "values", "gpu-scheduler")
    installed.helm("uninstall", "gpu-scheduler")
    eventually(lambda: our_pods(installed) == [])
    assert "gpuclaims.gpu.scheduling" in installed.kubectl("get", "crd", "-o", "name")
    phase = get(installed, "pod", "training-job")["status"]["phase"]
    assert phase == "Running", "what runs is not touched by our going"

    installed.helm("install", "gpu-scheduler", "charts/gpu-scheduler", "--set", "scheduler.image.tag=v0.2.0")
    wait_for_rollouts(installed)
    images = {one["image"] for pod in our_pods(installed) for one in pod["spec"]["containers"]}
    assert {image for image in images if "kube-scheduler" not in image} == {"tessera:v0.2.0"}
    assert "tag: v0.2.0" in installed.helm("get", "values", "gpu-scheduler")
