"""A program that uses a Compute from inside the cluster: its pod tells it which cluster and namespace it is in.

On the embedded engine a pod runs in this machine's own file system and so has the client; an image with it is not made.
"""

import json
import sys

import pytest

from tests.contract.command_line import CommandLine
from tests.operators.compute_life import IMAGE

PROGRAM = f"""
import asyncio, numpy
from kpu.client import Compute

async def main():
    async with Compute("worker", image={IMAGE!r}) as compute:
        response = await compute.send_tensors(numpy.ones(3))
        print(compute.namespace, response.message)

asyncio.run(main())
"""
NEEDED = (
    ("computes.compute.kpu.dev", "get,list,watch,create,patch,delete"),
    ("secrets", "get"),
)


@pytest.mark.parametrize("compute_engine", ["embedded"], indirect=True)
def test_a_program_in_a_pod_finds_cluster_namespace_and_server_with_no_more_rights_than_it_needs(
    kubectl: CommandLine, namespace: str
):
    for number, (resource, verbs) in enumerate(NEEDED):
        kubectl("create", "role", f"part-{number}", f"--resource={resource}", f"--verb={verbs}")
        kubectl(
            "create", "rolebinding", f"part-{number}", f"--role=part-{number}", f"--serviceaccount={namespace}:default"
        )
    container = {
        "name": "main",
        "image": "tessera.local/machine",
        "command": [sys.executable, "-W", "error", "-c", PROGRAM],
        "env": [{"name": "HOME", "value": "/nobody"}, {"name": "KUBECONFIG", "value": ""}],
    }
    pod = {"metadata": {"name": "user"}, "spec": {"restartPolicy": "Never", "containers": [container]}}
    kubectl("create", "-f", "-", input=json.dumps({"apiVersion": "v1", "kind": "Pod", **pod}))
    kubectl("wait", "--for=jsonpath={.status.phase}=Succeeded", "pod/user", "--timeout=60s")
    assert kubectl("logs", "user").splitlines() == [f"{namespace} Received 1 tensor(s)"]
