"""The verbs of the Kubernetes API, for any kind.

A verb takes the kind first and gives back what the kind decodes into. What fails raises an error of `tessera.errors`.
Writes are validated strictly: a field that the API server does not know is a mistake of ours, and is refused.
"""

from collections.abc import AsyncGenerator, AsyncIterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from copy import copy
from enum import StrEnum
from types import TracebackType
from typing import Any, Literal, Self, TypeVar

import msgspec

from tessera.errors import Expired
from tessera.kube.access import Access
from tessera.kube.kinds import EVERYTHING, Kind, Selection
from tessera.kube.listing import Page, join_pages, read_page
from tessera.kube.objects import Document, ObjectKey
from tessera.kube.requests import Body, Params, Request, collection_request, object_request
from tessera.kube.transport import Limits, Reply, Transport
from tessera.kube.watching import Bookmark, EventDecoder, WatchEvent, read_events

T = TypeVar("T")
Propagation = Literal["Background", "Foreground", "Orphan"]
PAGE_SIZE = 500


class PatchType(StrEnum):
    JSON = "application/json-patch+json"
    MERGE = "application/merge-patch+json"
    STRATEGIC = "application/strategic-merge-patch+json"


APPLY = "application/apply-patch+yaml"


class Deletion(msgspec.Struct, frozen=True, kw_only=True):
    """How to delete, and on which conditions: only this incarnation (`uid`), only in this state.

    All of it is in the body, for where there is one the API server does not look at the URL.
    """

    uid: str = ""
    resource_version: str = ""
    propagation: Propagation | None = None
    grace_s: int | None = None
    dry_run: bool = False

    def options(self) -> Document:
        options: Document = {
            "preconditions": present({"uid": self.uid, "resourceVersion": self.resource_version}) or None,
            "propagationPolicy": self.propagation,
            "gracePeriodSeconds": self.grace_s,
            "dryRun": ["All"] if self.dry_run else None,
        }
        return {name: value for name, value in options.items() if value is not None}


AS_USUAL = Deletion()


class Client:
    """Use as `async with`, one for each event loop."""

    def __init__(self, access: Access, *, limits: Limits | None = None) -> None:
        self.namespace = access.namespace
        self._transport = Transport(access, limits=limits or Limits())
        self._deadline_s: float | None = None

    async def __aenter__(self) -> Self:
        await self._transport.__aenter__()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        await self._transport.__aexit__(kind, error, traceback)

    def within(self, deadline_s: float) -> "Client":
        """The same connections; each request ends within so many seconds, whatever it waits for."""
        hurried = copy(self)
        hurried._deadline_s = deadline_s
        return hurried

    async def get(self, kind: Kind[T], name: str, *, namespace: str = "", subresource: str = "") -> T:
        return await self._read(kind, object_request("get", kind, ObjectKey(namespace, name), subresource=subresource))

    async def list_page(
        self, kind: Kind[T], selection: Selection = EVERYTHING, *, limit: int = PAGE_SIZE, after: str = ""
    ) -> Page[T]:
        """One page; `after` is the `next` of the page before it. A limit of 0 is one page of everything."""
        paging = present({"limit": str(limit or ""), "continue": after})
        request = collection_request("list", kind, selection.namespace, params={**selection.params(), **paging})
        return read_page(kind, await self.send(request), request.target)

    async def list(self, kind: Kind[T], selection: Selection = EVERYTHING, *, page_size: int = PAGE_SIZE) -> Page[T]:
        """All pages of one consistent list. Where the server forgot it half-way, everything is asked for at once."""
        pages = [await self.list_page(kind, selection, limit=page_size)]
        while pages[-1].next:
            try:
                pages.append(await self.list_page(kind, selection, limit=page_size, after=pages[-1].next))
            except Expired:
                return await self.list_page(kind, selection, limit=0)
        return join_pages(pages)

    @asynccontextmanager
    async def watch(
        self,
        kind: Kind[T],
        selection: Selection = EVERYTHING,
        *,
        resource_version: str = "",
        initial_events: bool = False,
        timeout_s: int | None = None,
    ) -> AsyncGenerator[AsyncIterator[WatchEvent[T]]]:
        """Events as they come, until the server ends the watch. With `initial_events`, first all there is."""
        params = {"watch": "true", "allowWatchBookmarks": "true", **selection.params()}
        params |= present({"resourceVersion": resource_version, "timeoutSeconds": str(timeout_s or "")})
        if initial_events:
            params |= {"sendInitialEvents": "true", "resourceVersionMatch": "NotOlderThan"}
        request = collection_request("watch", kind, selection.namespace, params=params)
        async with self.stream(request, silence_s=self._transport.limits.watch_silence_s) as reply:
            reply.gathers = initial_events
            yield _until_synced_in_heaps(reply, read_events(reply.chunks(), EventDecoder(kind, request)))

    async def create(self, kind: Kind[T], body: Body, *, namespace: str = "", dry_run: bool = False) -> T:
        params = _write_params(dry_run)
        return await self._read(kind, collection_request("create", kind, namespace, params=params, body=body))

    async def create_under(
        self, kind: Kind[Any], name: str, subresource: str, body: Body, *, namespace: str = "", dry_run: bool = False
    ) -> Document:
        """What is done to an object by creating something below it: a Binding, an Eviction, a TokenRequest."""
        params = _write_params(dry_run)
        request = object_request(
            "create", kind, ObjectKey(namespace, name), subresource=subresource, params=params, body=body
        )
        return await self._read(kind.decoded_as(Document), request)

    async def replace(
        self, kind: Kind[T], name: str, body: Body, *, namespace: str = "", subresource: str = "", dry_run: bool = False
    ) -> T:
        """Conflict, if the body names a resourceVersion that is no longer the object's."""
        params = _write_params(dry_run)
        request = object_request(
            "replace", kind, ObjectKey(namespace, name), subresource=subresource, params=params, body=body
        )
        return await self._read(kind, request)

    async def patch(
        self,
        kind: Kind[T],
        name: str,
        body: Mapping[str, Any] | Sequence[Mapping[str, Any]],
        *,
        namespace: str = "",
        patch_type: PatchType = PatchType.MERGE,
        subresource: str = "",
        dry_run: bool = False,
    ) -> T:
        """A merge or strategic patch that names a metadata.resourceVersion is refused when the object has another."""
        request = object_request(
            "patch",
            kind,
            ObjectKey(namespace, name),
            subresource=subresource,
            params=_write_params(dry_run),
            body=body,
            content_type=patch_type,
        )
        return await self._read(kind, request)

    async def apply(
        self,
        kind: Kind[T],
        name: str,
        body: Body,
        *,
        manager: str,
        namespace: str = "",
        subresource: str = "",
        force: bool = False,
        dry_run: bool = False,
    ) -> T:
        """Server-side apply: own exactly these fields. Conflict, if another manager owns one, unless forced."""
        request = object_request(
            "apply",
            kind,
            ObjectKey(namespace, name),
            subresource=subresource,
            params={**_write_params(dry_run), "fieldManager": manager, "force": str(force).lower()},
            body=body,
            content_type=APPLY,
        )
        return await self._read(kind, request)

    async def delete(self, kind: Kind[Any], name: str, *, namespace: str = "", how: Deletion = AS_USUAL) -> None:
        await self.send(object_request("delete", kind, ObjectKey(namespace, name), body=how.options()))

    async def delete_collection(self, kind: Kind[Any], selection: Selection, *, how: Deletion = AS_USUAL) -> None:
        request = collection_request(
            "deletecollection", kind, selection.namespace, params=selection.params(), body=how.options()
        )
        await self.send(request)

    async def server_version(self) -> Document:
        return msgspec.json.decode(await self.send(Request(verb="get", path="/version", target="/version")))

    async def send(self, request: Request) -> bytes:
        """Any request, its answer as it came."""
        if request.deadline_s is None:
            request = msgspec.structs.replace(request, deadline_s=self._deadline_s)
        return await self._transport.send(request)

    def stream(self, request: Request, *, silence_s: float | None = None) -> AbstractAsyncContextManager[Reply]:
        """Any request whose answer has no end. Unreachable, when nothing at all comes for `silence_s`."""
        return self._transport.stream(request, silence_s=silence_s)

    async def _read(self, kind: Kind[T], request: Request) -> T:
        return kind.decode(await self.send(request), request.target)


async def _until_synced_in_heaps(reply: Reply, events: AsyncIterator[WatchEvent[T]]) -> AsyncIterator[WatchEvent[T]]:
    """Once everything there is has been told, each event is told as soon as it is there."""
    async for event in events:
        if isinstance(event, Bookmark) and event.is_synced:
            reply.gathers = False
        yield event


def present(params: Params) -> dict[str, str]:
    return {name: value for name, value in params.items() if value}


def _write_params(dry_run: bool) -> dict[str, str]:
    return present({"fieldValidation": "Strict", "fieldManager": "tessera", "dryRun": "All" if dry_run else ""})
