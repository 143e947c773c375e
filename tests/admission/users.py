"""People and agents who talk to the API server with tokens of their own."""

import json

import pytest

from tessera.admission.guarding import service_account
from testbed.requirements import TestbedFailed
from tests.admission.conftest import Api, Document

SCHEDULER = service_account("kube-system", "hami-scheduler")
AGENT = service_account("kube-system", "hami-device-plugin")
NODES = ("gpu-07", "gpu-08")


class User:
    """Somebody who talks to the API server with a token of their own."""

    def __init__(self, api: Api, namespace: str, arguments: tuple[str, ...] = ()) -> None:
        self.api = api
        self._options = (f"--namespace={namespace}", *arguments)

    def do(self, *arguments: str, input: object = None) -> str:
        text = json.dumps(input) if input else None
        return self.api.cluster.kubectl(*self._options, *arguments, input=text)

    def refusal(self, *arguments: str, input: object = None) -> str:
        with pytest.raises(TestbedFailed) as refused:
            self.do(*arguments, input=input)
        said = str(refused.value).partition("failed: ")[2]
        assert "denied request: " in said
        return said.partition("denied request: ")[2]


def an_agent(api: Api, namespace: str, node: str) -> User:
    token = api.cluster.kubectl(
        "create", "token", "hami-device-plugin", "--namespace=kube-system", "--bound-object-kind=Node",
        f"--bound-object-name={node}",
    )  # fmt: skip
    server = json.loads(api.cluster.kubectl("config", "view", "-o", "json"))["clusters"][0]["cluster"]["server"]
    authority = api.cluster.control_plane.authority.files.certificate
    anybody = ("--kubeconfig=/dev/null", f"--server={server}", f"--certificate-authority={authority}")
    return User(api, namespace, (*anybody, f"--token={token.strip()}"))


def who_may_try_all() -> list[Document]:
    """The accounts of the scheduler and of the agents with every right, and nodes for agents to be on."""
    names = ("hami-scheduler", "hami-device-plugin")
    accounts: list[Document] = [
        {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": name, "namespace": "kube-system"}}
        for name in names
    ]
    rights: Document = {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "ClusterRoleBinding",
        "metadata": {"name": "everybody-may-try"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "cluster-admin"},
        "subjects": [{"kind": "ServiceAccount", "name": name, "namespace": "kube-system"} for name in names],
    }
    nodes: list[Document] = [{"apiVersion": "v1", "kind": "Node", "metadata": {"name": name}} for name in NODES]
    return [*accounts, rights, *nodes]
