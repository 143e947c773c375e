"""The garbage collector's shell: it follows everything there is, and carries out what `ownership` judges."""

from collections.abc import Sequence
from functools import partial
from typing import Any

import msgspec
import structlog

from tessera.embedded.controllers.discovery import Kinds, defined_kind, served_kinds
from tessera.embedded.controllers.objects import DEFINITIONS, OwnerReference, Thing
from tessera.embedded.controllers.ownership import ORPHAN, Ask, Collect, Disown, Graph, Node, Release, judge
from tessera.embedded.controllers.watching import Resource, Watching, Work, resource_of
from tessera.embedded.controllers.writes import Delete, Write, carry_out, change
from tessera.errors import KubeError, NotFound
from tessera.kube.caching import Change
from tessera.kube.client import Client, Deletion
from tessera.kube.informer import Informer
from tessera.kube.kinds import Kind, Selection
from tessera.kube.objects import Document
from tessera.kube.reconciler import Again, Reconciler
from tessera.kube.timing import SYSTEM_CLOCK, Backoff

log: structlog.stdlib.BoundLogger = structlog.get_logger(__name__)

IGNORED = frozenset((("", "events"), ("events.k8s.io", "events")))
"""Nothing owns them, they own nothing, and there are many."""
UNKNOWN_KIND_S = 30.0
LOOK_AGAIN_S = 0.1
PATIENCE = Backoff(first_s=0.1, most_s=5.0)


class Collector:
    """`works` belong in a TaskGroup of the caller, beside that of `watching`."""

    def __init__(self, client: Client, watching: Watching) -> None:
        self._client = client
        self._watching = watching
        self._kinds: Kinds = {}
        self._graph = Graph()
        self._definitions: Informer[Document] = Informer(client, DEFINITIONS)
        self._reconciler: Reconciler[str] = Reconciler("garbage", self._reconcile)

    def works(self) -> list[Work]:
        return [self._definitions.run(), self._run()]

    async def _run(self) -> None:
        """Nothing is judged before everything has been read once: what is not known yet would have to be asked for."""
        for kind in (await self._discover()).values():
            self._follow(kind)
        self._definitions.subscribe(self._notice_definition)
        await self._watching.synced()
        await self._reconciler.run()

    async def _discover(self) -> Kinds:
        """Once the API server answers."""
        failures = 0
        while True:
            try:
                return await served_kinds(self._client)
            except KubeError as error:
                failures += 1
                log.warning("kinds not read", error=str(error), failures=failures)
                await SYSTEM_CLOCK.sleep(PATIENCE.wait_s(failures))

    def _follow(self, kind: Kind[Thing]) -> None:
        resource = resource_of(kind)
        if resource in IGNORED or resource in self._kinds:
            return
        self._kinds[resource] = kind
        self._watching.follow_barely(kind).subscribe(partial(self._notice, resource))

    def _leave(self, resource: Resource) -> None:
        """Everything of that kind has gone with its definition."""
        if self._kinds.pop(resource, None) is None:
            return
        self._watching.leave(resource)
        for uid in self._graph.uids_of(resource):
            self._mark(self._graph.remove(uid))

    def _notice_definition(self, change: Change[Document]) -> None:
        document = change.after or change.before
        if document is None:
            return
        kind = defined_kind(document) if change.after else None
        if kind is not None:
            self._follow(kind)
        elif change.after is None:
            spec = document["spec"]
            self._leave((spec["group"], spec["names"]["plural"]))

    def _notice(self, resource: Resource, change: Change[Any]) -> None:
        if change.after is not None:
            self._mark(self._graph.put(resource, change.after))
        elif change.before is not None:
            self._mark(self._graph.remove(change.before.metadata.uid))

    def _mark(self, uids: set[str]) -> None:
        for uid in uids:
            self._reconciler.mark(uid)

    async def _reconcile(self, uid: str) -> Again | None:
        node = self._graph.get(uid)
        verdict = judge(node, self._graph) if node else None
        if node is None or verdict is None:
            return None
        if isinstance(verdict, Ask):
            return await self._ask(node, verdict.owners)
        if verdict == Release(ORPHAN) and (unseen := await self._unseen_dependents(node)):
            await carry_out(self._client, [self._disown(one, frozenset((uid,))) for one in unseen])
            return Again(LOOK_AGAIN_S)
        await carry_out(self._client, self._writes(node, verdict))
        return None

    async def _unseen_dependents(self, node: Node) -> list[Node]:
        """What is owned and not known yet: the watch of its kind may be behind, and it would be taken for garbage."""
        namespace = node.metadata.namespace
        found = list[Node]()
        for resource, kind in list(self._kinds.items()):
            if namespace and not kind.namespaced:
                continue
            things = await self._client.list(kind, Selection(namespace=namespace if kind.namespaced else ""))
            dependents = (Node(resource, thing.metadata) for thing in things.items)
            found += [one for one in dependents if any(owner.uid == node.uid for owner in one.metadata.owners)]
        return found

    def _writes(self, node: Node, verdict: Collect | Disown | Release) -> list[Write]:
        match verdict:
            case Collect():
                log.info("collected", resource=".".join(node.resource), key=str(node.metadata.key))
                metadata = node.metadata
                how = Deletion(
                    uid=metadata.uid, resource_version=metadata.resource_version, propagation=verdict.propagation
                )
                return [Delete(self._kinds[node.resource], metadata.key, how)]
            case Disown():
                return [self._disown(dependent, verdict.owners) for dependent in verdict.dependents]
            case Release():
                left = [one for one in node.metadata.finalizers or () if one != verdict.finalizer]
                kind = self._kinds[node.resource]
                return [change(kind, node.metadata, metadata={"finalizers": left or None})]

    def _disown(self, node: Node, owners: frozenset[str]) -> Write:
        left = [msgspec.to_builtins(owner) for owner in node.metadata.owners if owner.uid not in owners]
        return change(self._kinds[node.resource], node.metadata, metadata={"ownerReferences": left or None})

    async def _ask(self, node: Node, owners: Sequence[OwnerReference]) -> Again | None:
        """An owner that is there will be told by its watch, and looked at then; one that is not is gone for good."""
        for owner in owners:
            kind = self._kind_of(owner)
            if kind is None or (kind.namespaced and not node.metadata.namespace):
                return Again(UNKNOWN_KIND_S)
            if not await self._exists(kind, owner, node.metadata.namespace):
                self._graph.note_gone(owner.uid)
                self._reconciler.mark(node.uid)
        return None

    async def _exists(self, kind: Kind[Thing], owner: OwnerReference, namespace: str) -> bool:
        try:
            found = await self._client.get(kind, owner.name, namespace=namespace if kind.namespaced else "")
        except NotFound:
            return False
        return found.metadata.uid == owner.uid

    def _kind_of(self, owner: OwnerReference) -> Kind[Thing] | None:
        group = owner.api_version.rpartition("/")[0]
        return next((kind for kind in self._kinds.values() if (kind.group, kind.name) == (group, owner.kind)), None)
