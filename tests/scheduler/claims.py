"""Claims on a cluster with kwok's nodes: what is created, and whether leases and pods agree."""

import json
from collections.abc import Mapping
from typing import Any

import yaml

from tessera.model.definitions import load_definitions
from testbed.cluster import Cluster

DEVICES = "gpu.scheduling/devices"


def install_definitions(cluster: Cluster) -> None:
    documents = yaml.safe_dump_all(load_definitions())
    cluster.kubectl("apply", "-f", "-", input=documents)
    names = [f"crd/{definition['metadata']['name']}" for definition in load_definitions()]
    cluster.kubectl("wait", "--for=condition=Established", *names)


def a_claim(name: str, count: int = 1, *, namespace: str = "default", gang: str = "", **devices: Any) -> dict[str, Any]:
    return {
        "apiVersion": "gpu.scheduling/v1",
        "kind": "GpuClaim",
        "metadata": {"name": name, "namespace": namespace},
        "spec": {"devices": {"count": count, **devices}, **({"gangRef": gang} if gang else {})},
    }


def a_claimant(
    name: str, claim: str, *, namespace: str = "default", annotations: Mapping[str, str] | None = None, **spec: Any
) -> dict[str, Any]:
    """A pod as the webhook lets it in."""
    said = {**({"gpu.scheduling/claim": claim} if claim else {}), **(annotations or {})}
    resources = {"limits": {"gpu.scheduling/claim": "1"}}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": namespace, "annotations": said},
        "spec": {
            "schedulerName": "gpu-scheduler",
            "terminationGracePeriodSeconds": 0,
            "containers": [{"name": "main", "image": "nothing", "resources": resources}],
            **spec,
        },
    }


def holders(cluster: Cluster) -> dict[str, set[str]]:
    """Who holds each lease of a card, by UID."""
    leases = json.loads(cluster.kubectl("get", "leases", "-n", "default", "-o", "json"))["items"]
    return {
        lease["metadata"]["name"]: set(
            lease["metadata"].get("annotations", {}).get("gpu.scheduling/pods", "").split(",")
        )
        if lease["spec"]["holderIdentity"] == "shared"
        else {lease["spec"]["holderIdentity"]}
        for lease in leases
        if lease["metadata"]["name"].startswith("gpu-")
    }


def expected_holders(cluster: Cluster) -> dict[str, set[str]]:
    """The same, by what the pods say that they hold."""
    expected = dict[str, set[str]]()
    pods = json.loads(cluster.kubectl("get", "pods", "-A", "-o", "json"))["items"]
    for pod in pods:
        said = pod["metadata"].get("annotations", {})
        if (
            pod["spec"].get("nodeName")
            and DEVICES in said
            and pod["status"].get("phase") not in ("Succeeded", "Failed")
        ):
            node, _, ids = said["gpu.scheduling/allocated"].rpartition(":")
            for one in ids.split(","):
                expected.setdefault(f"gpu-{node}-{one}", set()).add(pod["metadata"]["uid"])
    return expected


def reservations(cluster: Cluster) -> list[str]:
    """The leases that still expire."""
    leases = json.loads(cluster.kubectl("get", "leases", "-n", "default", "-o", "json"))["items"]
    return [lease["metadata"]["name"] for lease in leases if "leaseDurationSeconds" in lease["spec"]]
