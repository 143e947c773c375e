"""What every namespace has from the start: an account for its pods, and the authority that they trust."""

from tessera.embedded.documents import Document
from tessera.embedded.resources import metadata
from tessera.embedded.serving.writing import new_uid, now
from tessera.embedded.store import Key, Stale, Store

ACCOUNT = "default"
TRUST = "kube-root-ca.crt"
_ABOUT = (
    "Contains a CA bundle that can be used to verify the kube-apiserver when using internal endpoints such as the "
    "internal service IP or kubernetes.default.svc. No other usage is guaranteed across distributions of Kubernetes "
    "clusters."
)


class Furnisher:
    def __init__(self, store: Store, authority: str) -> None:
        self._store = store
        self._authority = authority

    async def furnish(self, namespace: str) -> None:
        """What is there already is left as it is."""
        described = {"annotations": {"kubernetes.io/description": _ABOUT}}
        self._add("serviceaccounts", namespace, ACCOUNT, {})
        self._add("configmaps", namespace, TRUST, {"metadata": described, "data": {"ca.crt": self._authority}})
        await self._store.settled()

    def _add(self, resource: str, namespace: str, name: str, document: Document) -> None:
        named = {**document, "metadata": {**document.get("metadata", {}), "name": name}}
        whole = metadata.begin(named, namespace=namespace, now=now(), uid=new_uid(), suffix="")
        try:
            self._store.put(Key(resource, namespace, name), whole, expected=None)
        except Stale:
            return
