"""A definition that is deleted: its objects go first, and when none is left it is let go itself.

An object that somebody holds by a finalizer stays until that one lets it go, and the definition with it: without it the
object could not even be read. The API server takes no new objects of the kind meanwhile, so that none stays none.
"""

from collections.abc import Sequence
from datetime import UTC, datetime

import structlog

from tessera.embedded.controllers.conditions import Said, with_condition
from tessera.embedded.controllers.discovery import kind_in
from tessera.embedded.controllers.objects import DEFINITIONS, Definition, Thing
from tessera.embedded.controllers.times import write_time
from tessera.embedded.controllers.watching import Watching
from tessera.embedded.controllers.writes import Write, carry_out, change, delete, put_status
from tessera.embedded.resources.definitions import FINALIZER
from tessera.embedded.resources.parts import each
from tessera.errors import NotFound
from tessera.kube.caching import Change
from tessera.kube.client import Client
from tessera.kube.kinds import Kind, Selection
from tessera.kube.objects import ObjectKey
from tessera.kube.reconciler import Again, Reconciler

log: structlog.stdlib.BoundLogger = structlog.get_logger(__name__)

KIND = DEFINITIONS.decoded_as(Definition)
LOOK_AGAIN_S = 0.5
IN_PROGRESS = Said("Terminating", "True", "InstanceDeletionInProgress", "CustomResource deletion is in progress")
EVERYWHERE = Selection()


def tell_progress(definition: Definition, at: str) -> Sequence[Write]:
    conditions = with_condition(each(definition.status, "conditions"), IN_PROGRESS, at)
    return put_status(KIND, definition.metadata, definition.status, {**definition.status, "conditions": conditions})


def let_go(definition: Definition) -> Write:
    left = [one for one in definition.metadata.finalizers or () if one != FINALIZER]
    return change(KIND, definition.metadata, metadata={"finalizers": left or None})


class Undefining:
    """`run` belongs in a TaskGroup of the caller, beside that of `watching`."""

    def __init__(self, client: Client, watching: Watching) -> None:
        self._client = client
        self._definitions = watching.follow(KIND)
        self._reconciler: Reconciler[ObjectKey] = Reconciler("definition deletion", self._reconcile)
        self._definitions.subscribe(self._notice)

    async def run(self) -> None:
        await self._reconciler.run()

    def _notice(self, change: Change[Definition]) -> None:
        if change.after is not None and change.after.metadata.is_going:
            self._reconciler.mark(change.key)

    async def _reconcile(self, key: ObjectKey) -> Again | None:
        definition = self._definitions.get(key)
        if definition is None or FINALIZER not in (definition.metadata.finalizers or ()):
            return None
        kind = kind_in(definition.spec)
        left = await self._told_to_go(kind) if kind else 0
        if not left:
            await carry_out(self._client, [let_go(definition)])
            return None
        news = tell_progress(definition, write_time(datetime.now(UTC)))
        if news:
            log.info("definition still has objects", definition=key.name, objects=left)
        await carry_out(self._client, news)
        return Again(LOOK_AGAIN_S)

    async def _told_to_go(self, kind: Kind[Thing]) -> int:
        """How many objects are left, once each has been told to go."""
        try:
            found = (await self._client.list(kind, EVERYWHERE)).items
            await carry_out(self._client, [delete(kind, one.metadata) for one in found if not one.metadata.is_going])
            return len((await self._client.list(kind, EVERYWHERE)).items) if found else 0
        except NotFound:  # by now it is no longer served
            return 0
