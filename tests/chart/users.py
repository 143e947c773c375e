"""Those who talk to the API server with tokens of our service accounts, as our pods do."""

import json

import pytest

from testbed.cluster import Cluster
from testbed.requirements import TestbedFailed


class User:
    """Somebody who may do what a token lets them do."""

    def __init__(self, cluster: Cluster, token: str) -> None:
        server = json.loads(cluster.kubectl("config", "view", "-o", "json"))["clusters"][0]["cluster"]["server"]
        authority = cluster.control_plane.authority.files.certificate
        anybody = ("--kubeconfig=/dev/null", f"--server={server}", f"--certificate-authority={authority}")
        self._cluster = cluster
        self._options = (*anybody, f"--token={token}")

    def do(self, *arguments: str, input: object = None) -> str:
        return self._cluster.kubectl(*self._options, *arguments, input=json.dumps(input) if input else None)

    def refusal(self, *arguments: str, input: object = None) -> str:
        """What the API server says about something that it must refuse."""
        with pytest.raises(TestbedFailed) as refused:
            self.do(*arguments, input=input)
        said = str(refused.value).partition("failed: ")[2]
        assert "denied request: " in said or "is forbidden: " in said, said
        return said.rpartition("denied request: ")[2]


def user_of(cluster: Cluster, account: str, *, node: str = "", pod: str = "") -> User:
    """By a token that is bound to a node, or as a kubelet asks for it, to a pod of ours; or to neither."""
    kind, name = ("Node", node) if node else ("Pod", pod)
    bound = (f"--bound-object-kind={kind}", f"--bound-object-name={name}") if name else ()
    return User(cluster, cluster.kubectl("create", "token", account, "--namespace=kube-system", *bound).strip())
