"""Kubeconfig files for the components and the users of a cluster."""

from pathlib import Path
from typing import Any

import yaml

from testbed.certificates import Pair


def write_kubeconfig(
    path: Path, *, server: str, authority: Path, client: Pair | None = None, token: str | None = None
) -> Path:
    """One cluster, one user, one context; the user shows a certificate or a token."""
    user: dict[str, Any] = {}
    if client:
        user = {"client-certificate": str(client.certificate), "client-key": str(client.key)}
    if token:
        user = {"token": token}
    document = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "testbed", "cluster": {"server": server, "certificate-authority": str(authority)}}],
        "users": [{"name": "testbed", "user": user}],
        "contexts": [{"name": "testbed", "context": {"cluster": "testbed", "user": "testbed"}}],
        "current-context": "testbed",
    }
    path.touch(mode=0o600)
    path.write_text(yaml.safe_dump(document, sort_keys=False))
    return path
