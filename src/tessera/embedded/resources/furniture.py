"""What every namespace has from the start: an account for its pods, and the authority that they trust."""

from tessera.embedded.documents import Document

ACCOUNT = "default"
TRUST = "kube-root-ca.crt"


def account(namespace: str) -> Document:
    return {"metadata": {"name": ACCOUNT, "namespace": namespace}}


def trust(namespace: str, authority: str) -> Document:
    return {"metadata": {"name": TRUST, "namespace": namespace}, "data": {"ca.crt": authority}}
