"""Bind: the node and the cards land on the pod in one write, or nothing does.

kube-scheduler repeats what it got no answer to, so a Binding that landed already is a success, and one that may still
land stands in the way of another.
"""

from collections.abc import Awaitable, Callable
from functools import partial

import structlog

from tessera.engine.ledger import State
from tessera.errors import BindRefused, Conflict, InvalidInput, KubeError
from tessera.kube.client import Client
from tessera.kube.objects import ObjectKey, identify
from tessera.kube.pod_verbs import bind_pod
from tessera.kube.pods import Pod
from tessera.model.extender import BindingArgs
from tessera.model.pods import read_pod_ref
from tessera.model.requests import PodRef, PodRequest
from tessera.scheduler.commits import Commits
from tessera.scheduler.world import World

log: structlog.stdlib.BoundLogger = structlog.get_logger(__name__)
MOST_TRIES = 2


class Binder:
    """`find_pod` knows pods as they were last seen; `hold_back` refuses a pod that another must come before."""

    def __init__(
        self,
        commits: Commits,
        world: World,
        find_pod: Callable[[ObjectKey], Pod | None],
        *,
        hold_back: Callable[[PodRef, PodRequest, str], None] = lambda _, __, ___: None,
    ) -> None:
        self._commits = commits
        self._world = world
        self._find_pod = find_pod
        self._hold_back = hold_back
        self.refused: Callable[[str], None] = lambda _: None
        """Told the UID of a pod that is not bound where it was to be."""
        self.rally: Callable[[Pod], Awaitable[None]] = _go
        """Returns when the pod may be bound: others may have to come first."""

    async def bind(self, args: BindingArgs) -> None:
        """Returns once the pod is on the node, by this Binding or an earlier one; BindRefused, if it is not."""
        key = ObjectKey(args.pod_namespace, args.pod_name)
        try:
            pod = self._find_pod(key) or await self._commits.read(key)
            if not self._is_there(pod, args):
                await self.rally(pod)
            async with self._commits.turn_of(key):
                await self._bind(key, args)
        except BindRefused:
            self.refused(args.pod_uid)
            raise
        except InvalidInput as error:
            self.refused(args.pod_uid)
            raise BindRefused(str(error)) from error

    async def _bind(self, key: ObjectKey, args: BindingArgs) -> None:
        pod = self._find_pod(key) or await self._commits.read(key)
        for attempt in range(1, MOST_TRIES + 1):
            if self._is_there(pod, args):
                return
            lost = self._commits.lost_on(pod.metadata.uid or "")
            if lost is not None:
                raise BindRefused(f"{key}: an earlier binding to {lost.node} may still land; try again")
            try:
                await self._write(pod, args.node)
            except Conflict as error:
                if attempt == MOST_TRIES:
                    raise BindRefused(f"{key}: {error}") from error
                pod = await self._commits.read(key)
            except KubeError as error:
                raise BindRefused(f"{key}: {error}") from error
            else:
                return

    def _is_there(self, pod: Pod, args: BindingArgs) -> bool:
        key, uid, node = f"{args.pod_namespace}/{args.pod_name}", pod.metadata.uid or "", pod.spec.node_name
        if args.pod_uid and uid != args.pod_uid:
            raise BindRefused(f"{key}: the pod is another one now, its UID is {uid}, expected {args.pod_uid}")
        held = self._world.ledger.holding(uid)
        if not node and held is not None and held.state is State.BOUND:
            node = held.allocation.node  # our Binding has landed, and the watch has not told yet
        if node and node != args.node:
            raise BindRefused(f"{key}: the pod is on {node} already, cannot bind it to {args.node}")
        return bool(node)

    async def _write(self, pod: Pod, node: str) -> None:
        ref, request = read_pod_ref(pod), self._world.request_of(pod)
        self._hold_back(ref, request, node)
        allocation = self._commits.take(ref, request, node)
        await self._commits.write(ref, request, allocation, partial(_bind_pod, pod, node))
        log.info("pod bound", pod=str(ref), node=node, cards=len(allocation.shares))


async def _go(_: Pod) -> None:
    """Whoever is in no gang waits for nobody."""


async def _bind_pod(pod: Pod, node: str, client: Client, annotations: dict[str, str]) -> None:
    key, uid, version = identify(pod)
    await bind_pod(client, key, node, annotations=annotations, uid=uid, resource_version=version)
