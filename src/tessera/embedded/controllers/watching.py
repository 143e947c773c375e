"""One cache for each kind, whoever wants it, and kinds that come and go while we run."""

import asyncio
from collections.abc import Coroutine, Mapping
from typing import Any, TypeVar, cast

from tessera.embedded.controllers.objects import Thing
from tessera.kube.caching import IndexBy
from tessera.kube.client import Client
from tessera.kube.informer import Informer
from tessera.kube.kinds import Kind

T = TypeVar("T", bound=Thing)
Work = Coroutine[Any, Any, None]
Resource = tuple[str, str]
"""Group and plural: what a kind is stored as, whatever the version."""


CONTROLLER = "controller"
"""The index of what somebody manages, by the uid of who does."""
UNMANAGED = "unmanaged"
"""The index of what nobody manages, by namespace."""
NAMESPACE = "namespace"


def resource_of(kind: Kind[Any]) -> Resource:
    return kind.group, kind.plural


class Watching:
    """`run` belongs in a TaskGroup of the caller."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._informers: dict[Resource, Informer[Any]] = {}
        self._tasks: dict[Resource, asyncio.Task[None]] = {}
        self._group: asyncio.TaskGroup | None = None

    def follow(self, kind: Kind[T]) -> Informer[T]:
        """The cache of this kind, by controller and by namespace; made now, if nobody has asked before."""
        return self._find_or_make(kind, {CONTROLLER: _controller, UNMANAGED: _unmanaged, NAMESPACE: _namespace})

    def follow_barely(self, kind: Kind[T]) -> Informer[T]:
        """The cache that somebody else follows; if nobody does, one that is not indexed."""
        return self._find_or_make(kind, {})

    def _find_or_make(self, kind: Kind[T], indexes: Mapping[str, IndexBy[T]]) -> Informer[T]:
        resource = resource_of(kind)
        if resource not in self._informers:
            self._informers[resource] = Informer(self._client, kind, indexes=indexes)
            self._start(resource)
        return cast("Informer[T]", self._informers[resource])

    def leave(self, resource: Resource) -> None:
        """The kind is no longer served."""
        self._informers.pop(resource, None)
        if task := self._tasks.pop(resource, None):
            task.cancel()

    async def synced(self) -> None:
        """Wait until everything of the kinds that are followed now has been taken in once."""
        for informer in list(self._informers.values()):
            await informer.synced()

    async def run(self) -> None:
        async with asyncio.TaskGroup() as self._group:
            for resource in self._informers:
                self._start(resource)
            await asyncio.Event().wait()

    def _start(self, resource: Resource) -> None:
        if self._group is not None:
            self._tasks[resource] = self._group.create_task(self._informers[resource].run())


def _controller(thing: Thing) -> tuple[str, ...]:
    controller = thing.metadata.controller
    return (controller.uid,) if controller else ()


def _unmanaged(thing: Thing) -> tuple[str, ...]:
    return () if thing.metadata.controller else (thing.metadata.namespace,)


def _namespace(thing: Thing) -> tuple[str, ...]:
    return (thing.metadata.namespace,)
