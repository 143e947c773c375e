"""The life of a release, by the real helm: what an upgrade changes and what it leaves alone, what stays in the end."""

import asyncio
import json
from collections.abc import Iterator
from typing import Any

import pytest

from tessera.admission.certificates.keeping import Keeper, Place
from tessera.admission.certificates.serving import ServingContext
from tessera.kube.access import find_access
from tessera.kube.client import Client
from tessera.kube.objects import ObjectKey
from testbed.cluster import Cluster
from testbed.requirements import TestbedFailed
from tests.chart.charts import Rendered, read

CLAIMS = "gpuclaims.gpu.scheduling"
DEFINITIONS = (CLAIMS, "gpugangs.gpu.scheduling", "gpunodestatuses.gpu.scheduling")
SECRET = ObjectKey("kube-system", "hami-scheduler-tls")
OWNER = "meta.helm.sh/release-name"


@pytest.fixture
def cluster(bare_cluster: Cluster, at_the_root: None) -> Iterator[Cluster]:
    """Nothing of a test is left for the next but the definitions."""
    del at_the_root
    yield bare_cluster
    for release in bare_cluster.helm("list", "--short").split():
        bare_cluster.helm("uninstall", release)
    bare_cluster.kubectl("delete", "--all", "gpuclaims,gpugangs,gpunodestatuses")
    owner = f"{OWNER}=gpu-scheduler"  # the definitions stay, as left by a release of the usual name
    bare_cluster.kubectl("annotate", "--overwrite", "crd", *DEFINITIONS, owner)


@pytest.fixture
def installed(cluster: Cluster) -> Cluster:
    cluster.helm("install", "gpu-scheduler", "charts/gpu-scheduler")
    cluster.kubectl("wait", "--for=condition=Established", "crd", *DEFINITIONS, "--timeout=30s")
    return cluster


def get(cluster: Cluster, *arguments: str) -> dict[str, Any]:
    return json.loads(cluster.kubectl("get", *arguments, "-o", "json"))


def apply(cluster: Cluster, document: dict[str, Any]) -> None:
    cluster.kubectl("apply", "-f", "-", input=json.dumps(document))


def a_claim(**devices: Any) -> dict[str, Any]:
    metadata = {"name": "training-gpus", "namespace": "default"}
    spec = {"devices": {"count": 4, **devices}}
    return {"apiVersion": "gpu.scheduling/v1", "kind": "GpuClaim", "metadata": metadata, "spec": spec}


def test_claims_and_node_statuses_have_the_names_and_columns_that_people_type(installed: Cluster):
    apply(installed, a_claim(policy="contiguous", exclusivity="Exclusive"))
    status = {"phase": "Bound", "nodeName": "node-a", "gpuIds": [0, 1], "allocated": "node-a:0,1", "message": "done"}
    patch = json.dumps({"status": status})
    installed.kubectl("patch", "gclaim", "training-gpus", "--subresource=status", "--type=merge", f"--patch={patch}")
    heading, row = installed.kubectl("get", "gclaim").splitlines()
    assert heading.split() == ["NAME", "COUNT", "POLICY", "PHASE", "ALLOCATED", "AGE"]
    assert row.split()[:5] == ["training-gpus", "4", "contiguous", "Bound", "node-a:0,1"]
    node = {"apiVersion": "gpu.scheduling/v1", "kind": "GpuNodeStatus", "metadata": {"name": "node-a"}}
    apply(installed, node | {"spec": {"nodeName": "node-a"}})
    assert installed.kubectl("get", "gns").split()[:5] == ["NAME", "NODE", "TOTAL", "AGE", "node-a"]


def test_a_claim_that_makes_no_sense_is_refused(installed: Cluster):
    complaints = {
        "spec.devices.count: Invalid value: 0": {"count": 0},
        'spec.devices.policy: Unsupported value: "packed"': {"policy": "packed"},
        "spec.devices.preferIds[0]: Invalid value: -1": {"policy": "preferIds", "preferIds": [-1]},
        'spec.devices.exclusivity: Unsupported value: "shared"': {"exclusivity": "shared"},
        'unknown field "spec.devices.cuont"': {"cuont": 1},
    }
    for complaint, devices in complaints.items():
        with pytest.raises(TestbedFailed) as refused:
            apply(installed, a_claim(**devices))
        assert complaint in str(refused.value)


@pytest.mark.parametrize(
    "values",
    [
        ("devicePlugin.nvml=/usr/lib64/libnvidia-ml.so.1", "devicePlugin.privileged=true"),
        ("devicePlugin.inventoryPort=9396", "devicePlugin.runtimeClassName=nvidia", "devicePlugin.maxUnavailable=1"),
        ("networkPolicy.metricsFrom[0].podSelector.matchLabels.a=b", "imagePullSecrets[0].name=registry"),
        ("scheduler.nodeSelector.a=b", "scheduler.tolerations[0].operator=Exists", "otherSchedulers={system:volcano}"),
        ("operator.nodeSelector.a=b", "operator.tolerations[0].operator=Exists", "claims.leaseNamespace=kube-system"),
    ],
    ids=str,
)
def test_an_api_server_takes_what_the_chart_makes_of_options(bare_cluster: Cluster, values: tuple[str, ...]):
    objects = Rendered(*values).objects
    documents = json.dumps({"apiVersion": "v1", "kind": "List", "items": objects})
    said = bare_cluster.kubectl("apply", "--dry-run=server", "--validate=strict", "-f", "-", input=documents)
    assert len(said.splitlines()) == len(objects)


def keep_certificates(cluster: Cluster) -> None:
    """Do what our scheduler does beside its webhook."""
    place = Place(secret=SECRET, configuration="hami-webhook", names=("hami-scheduler.kube-system.svc",))

    async def keep() -> None:
        async with Client(find_access(cluster.kubeconfig)) as client:
            keeper = Keeper(client, place, ServingContext())
            for _ in range(2):  # what was made is published by the second look
                await keeper.keep()

    asyncio.run(keep())


def certificates(cluster: Cluster) -> tuple[str, dict[str, str]]:
    hooks = get(cluster, "mutatingwebhookconfiguration", "hami-webhook")["webhooks"]
    (bundle,) = {hook["clientConfig"].get("caBundle", "") for hook in hooks}
    secret = get(cluster, "secret", SECRET.name, f"--namespace={SECRET.namespace}")
    return bundle, secret.get("data", {})


def test_an_upgrade_leaves_the_certificates_alone_that_the_scheduler_made(installed: Cluster):
    assert certificates(installed) == ("", {})
    keep_certificates(installed)
    authority, secret = certificates(installed)
    assert authority == secret["ca.crt"]
    installed.helm("upgrade", "gpu-scheduler", "charts/gpu-scheduler", "--set", "webhook.timeoutSeconds=9")
    assert certificates(installed) == (authority, secret)
    hooks = get(installed, "mutatingwebhookconfiguration", "hami-webhook")["webhooks"]
    assert {hook["timeoutSeconds"] for hook in hooks} == {9}


def columns(cluster: Cluster) -> list[str]:
    (version,) = get(cluster, "crd", CLAIMS)["spec"]["versions"]
    return [column["name"] for column in version.get("additionalPrinterColumns", [])]


OURS = [
    column["name"] for column in read("files/crds/gpuclaims.yaml")["spec"]["versions"][0]["additionalPrinterColumns"]
]


def make_older(cluster: Cluster) -> None:
    """The definition as an earlier version might have left it."""
    patch = json.dumps([{"op": "remove", "path": "/spec/versions/0/additionalPrinterColumns"}])
    cluster.kubectl("patch", "crd", CLAIMS, "--type=json", f"--patch={patch}")
    assert columns(cluster) == []


def test_definitions_and_claims_outlive_the_release_and_nothing_else_does(installed: Cluster):
    apply(installed, a_claim())
    said = installed.helm("uninstall", "gpu-scheduler")
    assert "kept due to the resource policy" in said
    assert CLAIMS in installed.kubectl("get", "gclaim", "-o", "name") + installed.kubectl("get", "crd", "-o", "name")
    left = installed.kubectl(
        "get", "all,secrets,roles,rolebindings,clusterroles,clusterrolebindings,mutatingwebhookconfigurations,"
        "validatingadmissionpolicies,validatingadmissionpolicybindings,networkpolicies,poddisruptionbudgets,"
        "serviceaccounts,configmaps", "--all-namespaces", "--selector=app.kubernetes.io/part-of=tessera", "-o", "name",
    )  # fmt: skip
    assert left == ""


def test_a_later_install_takes_the_definitions_up_and_brings_them_up_to_date(installed: Cluster):
    apply(installed, a_claim())
    installed.helm("uninstall", "gpu-scheduler")
    make_older(installed)
    installed.helm("install", "gpu-scheduler", "charts/gpu-scheduler")
    assert columns(installed) == OURS
    assert "training-gpus" in installed.kubectl("get", "gclaim", "-o", "name")


def test_a_release_of_another_name_uses_the_definitions_and_says_how_to_take_them_over(installed: Cluster):
    installed.helm("uninstall", "gpu-scheduler")
    make_older(installed)
    said = installed.helm("install", "cards", "charts/gpu-scheduler")
    assert f"{CLAIMS} was left as it is, because it belongs to another release (default/gpu-scheduler)" in said
    for line in said.splitlines():
        command = line.split()
        if command[:1] == ["kubectl"] and "crd" in command:
            installed.kubectl(*command[1:])
    said = installed.helm("upgrade", "cards", "charts/gpu-scheduler")
    assert "was left as it is" not in said
    assert get(installed, "crd", CLAIMS)["metadata"]["annotations"][OWNER] == "cards"
    assert columns(installed) == OURS
