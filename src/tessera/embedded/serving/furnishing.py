"""A new namespace is furnished in the request that makes it: whoever made it finds everything there."""

from tessera.embedded.documents import Document
from tessera.embedded.resources import furniture, metadata
from tessera.embedded.serving.writing import new_uid, now
from tessera.embedded.store import Key, Stale, Store


class Furnisher:
    def __init__(self, store: Store, authority: str) -> None:
        self._store = store
        self._authority = authority

    async def furnish(self, namespace: str) -> None:
        """What is there already is left as it is."""
        self._add("serviceaccounts", furniture.account(namespace))
        self._add("configmaps", furniture.trust(namespace, self._authority))
        await self._store.settled()

    def _add(self, resource: str, document: Document) -> None:
        namespace, name = document["metadata"]["namespace"], document["metadata"]["name"]
        whole = metadata.begin(document, namespace=namespace, now=now(), uid=new_uid(), suffix="")
        try:
            self._store.put(Key(resource, namespace, name), whole, expected=None)
        except Stale:
            return
