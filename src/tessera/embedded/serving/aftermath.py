"""What a write entails at once: a definition comes into force, a namespace is furnished, quotas count.

Each could be a controller that follows the store. Done here, whoever was answered finds it done.
"""

from tessera.embedded.admitting.quotas import QUOTAS, used_by
from tessera.embedded.documents import Document, Frozen
from tessera.embedded.kinds import Kind
from tessera.embedded.resources.parts import inside
from tessera.embedded.resources.table import DEFINITIONS, NAMESPACES, PODS
from tessera.embedded.serving.furnishing import Furnisher
from tessera.embedded.serving.site import Site
from tessera.embedded.store import Record


class Aftermath:
    def __init__(self, site: Site) -> None:
        self._site = site
        self._furnisher = Furnisher(site.store, site.authority)

    async def of_write(self, record: Record, *, is_new: bool, subresource: str) -> None:
        resource = record.key.resource
        if resource == DEFINITIONS.resource:
            self._site.registry.define(record.document())
        elif resource == NAMESPACES.resource and is_new:
            await self._furnisher.furnish(record.key.name)
        elif resource == QUOTAS or (resource == PODS.resource and subresource == "status"):
            await self.recount(record.key.namespace)

    async def of_deletion(self, record: Record) -> None:
        if record.key.resource == DEFINITIONS.resource:
            await self._undefine(record.document())
        elif record.key.namespace:
            await self.recount(record.key.namespace)

    async def recount(self, namespace: str) -> None:
        """Let each quota of the namespace say what is used of it."""
        store = self._site.store
        for record in store.list(QUOTAS, namespace):
            quota = record.document()
            used = dict(used_by(quota, self._counted(namespace)))
            status: Document = {"hard": dict(inside(quota["spec"], "hard")), "used": used}
            if quota.get("status") != status:
                store.put(record.key, quota | {"status": status}, expected=record.version)
        await store.settled()

    def _counted(self, namespace: str) -> list[tuple[Kind, Frozen]]:
        """Everything in the namespace, by kind."""
        kinds = {served.resource: served.kind for served in self._site.registry.all() if served.kind.is_namespaced}
        return [
            (kind, record.document())
            for resource, kind in kinds.items()
            for record in self._site.store.list(resource, namespace)
        ]

    async def _undefine(self, definition: Frozen) -> None:
        """What is left of its kind goes with it: only if somebody took off the finalizer that is to wait for it."""
        store, spec = self._site.store, definition["spec"]
        self._site.registry.forget(definition["metadata"]["name"])
        for record in store.list(f"{spec['names']['plural']}.{spec['group']}"):
            store.delete(record.key, expected=record.version)
        await store.settled()
