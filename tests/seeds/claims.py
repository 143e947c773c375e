"""Claims, and pods that name them: what the samples speak of and do not show."""

import json
from collections.abc import Mapping
from typing import Any

from tests.seeds.shell import Shell

Document = dict[str, Any]


def a_pod(name: str, namespace: str = "default", *, annotations: Mapping[str, str], **spec: Any) -> str:
    """It asks for nothing but by its annotations, and runs until it is deleted."""
    container = {"name": "main", "image": "busybox", "command": ["sleep", "100000"]}
    metadata = {"name": name, "namespace": namespace, "annotations": dict(annotations)}
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": metadata}
    return json.dumps(pod | {"spec": {"terminationGracePeriodSeconds": 0, "containers": [container], **spec}})


def a_claim(name: str) -> str:
    claim = {"apiVersion": "gpu.scheduling/v1", "kind": "GpuClaim", "metadata": {"name": name}}
    return json.dumps(claim | {"spec": {"devices": {"count": 1}}})


def create(shell: Shell, document: str) -> None:
    shell.run("kubectl create -f -", input=document)


def wait_until_bound(shell: Shell, claim: str, namespace: str = "default") -> Document:
    """The claim's status."""
    waiting = "kubectl wait --for=jsonpath={.status.phase}=Bound --timeout=60s"
    shell.run(f"{waiting} -n {namespace} gpuclaim/{claim}")
    return json.loads(shell.run(f"kubectl get gpuclaim {claim} -n {namespace} -o json"))["status"]
