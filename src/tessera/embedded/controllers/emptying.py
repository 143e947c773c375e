"""A namespace that is deleted: everything in it goes, of whatever kind, and when nothing is left it is let go itself.

The API server takes nothing new into it, so that what was found empty stays so.
"""

from collections.abc import Sequence

import msgspec
import structlog

from tessera.embedded.controllers.discovery import served_kinds
from tessera.embedded.controllers.objects import NAMESPACES, Namespace, Thing
from tessera.embedded.controllers.watching import Watching
from tessera.embedded.resources.parts import each, inside
from tessera.errors import Conflict, NotFound
from tessera.kube.caching import Change
from tessera.kube.client import Client
from tessera.kube.kinds import Kind, Selection
from tessera.kube.objects import Document, ObjectKey
from tessera.kube.reconciler import Again, Reconciler
from tessera.kube.timing import Backoff

log: structlog.stdlib.BoundLogger = structlog.get_logger(__name__)

FINALIZER = "kubernetes"
PATIENCE = Backoff(first_s=0.1, most_s=5.0)


class Remaining(msgspec.Struct, frozen=True):
    """The kinds of which something was left, and how often that has been so."""

    kinds: Sequence[Kind[Thing]]
    rounds: int


def without_finalizer(namespace: Document) -> Document:
    """As it is to be when nothing of it is left."""
    spec = inside(namespace, "spec")
    left = [finalizer for finalizer in each(spec, "finalizers") if finalizer != FINALIZER]
    return {**namespace, "spec": {**spec, "finalizers": left}}


class Emptying:
    """`run` belongs in a TaskGroup of the caller, beside that of `watching`."""

    def __init__(self, client: Client, watching: Watching) -> None:
        self._client = client
        self._namespaces = watching.follow(NAMESPACES)
        self._remaining: dict[str, Remaining] = {}
        self._reconciler: Reconciler[str] = Reconciler("namespace deletion", self._reconcile)
        self._namespaces.subscribe(self._notice)

    async def run(self) -> None:
        await self._reconciler.run()

    def _notice(self, change: Change[Namespace]) -> None:
        if change.after is None:
            self._remaining.pop(change.key.name, None)
        elif change.after.metadata.is_going:
            self._reconciler.mark(change.key.name)

    async def _reconcile(self, name: str) -> Again | None:
        """Again and again until nothing is left: what has a finalizer or a grace period takes its time."""
        namespace = self._namespaces.get(ObjectKey("", name))
        if namespace is None or FINALIZER not in (namespace.spec.finalizers or ()):
            return None
        before = self._remaining.get(name) or await self._everything()
        left = [kind for kind in before.kinds if await self._has_any(kind, name)]
        if not left:
            await self._let_go(name)
            return None
        remaining = self._remaining[name] = Remaining(left, before.rounds + 1)
        log.info("namespace still has contents", namespace=name, kinds=[kind.plural for kind in left])
        return Again(PATIENCE.wait_s(remaining.rounds))

    async def _everything(self) -> Remaining:
        kinds = await served_kinds(self._client)
        return Remaining([kind for kind in kinds.values() if kind.namespaced], 0)

    async def _has_any(self, kind: Kind[Thing], namespace: str) -> bool:
        """Whether anything of the kind is left, once what is not going yet has been told to."""
        within = Selection(namespace=namespace)
        try:
            found = (await self._client.list(kind, within)).items
            if any(not thing.metadata.is_going for thing in found):
                await self._client.delete_collection(kind, within)
                found = (await self._client.list(kind, within)).items
        except NotFound:  # a custom kind whose definition is gone
            return False
        return bool(found)

    async def _let_go(self, name: str) -> None:
        try:
            whole = NAMESPACES.decoded_as(Document)
            namespace = await self._client.get(whole, name)
            if "deletionTimestamp" in namespace["metadata"]:
                await self._client.replace(whole, name, without_finalizer(namespace), subresource="finalize")
        except (Conflict, NotFound):
            return
