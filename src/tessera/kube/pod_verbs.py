"""What is done to pods beyond the verbs of every kind: bind, evict, read logs."""

from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from contextlib import asynccontextmanager

import msgspec

from tessera.kube.client import Client, present
from tessera.kube.kinds import PODS
from tessera.kube.objects import Document, ObjectKey
from tessera.kube.requests import NO_PARAMS, Params, object_request
from tessera.kube.watching import LineSplitter


class LogOptions(msgspec.Struct, frozen=True, kw_only=True):
    """Which part of a container's log; without a container, that of the only one."""

    container: str = ""
    previous: bool = False
    timestamps: bool = False
    tail_lines: int | None = None
    since_s: int | None = None

    def params(self) -> dict[str, str]:
        flags = {"previous": self.previous, "timestamps": self.timestamps}
        figures = {"tailLines": self.tail_lines, "sinceSeconds": self.since_s}
        return {
            **present({"container": self.container}),
            **{name: "true" for name, wanted in flags.items() if wanted},
            **{name: str(figure) for name, figure in figures.items() if figure is not None},
        }


WHOLE_LOG = LogOptions()


async def bind_pod(
    client: Client,
    pod: ObjectKey,
    node: str,
    *,
    annotations: Mapping[str, str] = NO_PARAMS,
    uid: str = "",
    resource_version: str = "",
    dry_run: bool = False,
) -> None:
    """Put the pod on the node, and the annotations on the pod, in one write.

    Conflict, if the pod is bound already, is another one (`uid`) or has changed (`resource_version`).
    """
    metadata: Document = {"name": pod.name, "namespace": pod.namespace}
    metadata |= present({"uid": uid, "resourceVersion": resource_version})
    if annotations:
        metadata["annotations"] = annotations
    binding = {
        "apiVersion": "v1",
        "kind": "Binding",
        "metadata": metadata,
        "target": {"apiVersion": "v1", "kind": "Node", "name": node},
    }
    await client.create_under(PODS, pod.name, "binding", binding, namespace=pod.namespace, dry_run=dry_run)


async def evict_pod(
    client: Client, pod: ObjectKey, *, uid: str = "", grace_s: int | None = None, dry_run: bool = False
) -> None:
    """Delete the pod if its disruption budget lets it go; TooManyRequests, if not."""
    options: Document = {} if grace_s is None else {"gracePeriodSeconds": grace_s}
    if uid:
        options["preconditions"] = {"uid": uid}
    eviction = {
        "apiVersion": "policy/v1",
        "kind": "Eviction",
        "metadata": {"name": pod.name, "namespace": pod.namespace},
        "deleteOptions": options,
    }
    await client.create_under(PODS, pod.name, "eviction", eviction, namespace=pod.namespace, dry_run=dry_run)


async def read_log(client: Client, pod: ObjectKey, options: LogOptions = WHOLE_LOG) -> str:
    request = object_request("get", PODS, pod, subresource="log", params=options.params())
    return (await client.send(request)).decode(errors="replace")


@asynccontextmanager
async def follow_log(
    client: Client, pod: ObjectKey, options: LogOptions = WHOLE_LOG
) -> AsyncGenerator[AsyncIterator[str]]:
    """The log's lines as they are written, until the container ends."""
    params: Params = {**options.params(), "follow": "true"}
    request = object_request("get", PODS, pod, subresource="log", params=params)
    async with client.stream(request) as reply:
        yield _lines(reply.chunks())


async def _lines(chunks: AsyncIterator[bytes]) -> AsyncIterator[str]:
    splitter = LineSplitter()
    async for chunk in chunks:
        for line in splitter.feed(chunk):
            yield line.decode(errors="replace")
    if rest := splitter.rest():
        yield rest.decode(errors="replace")
