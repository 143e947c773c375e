"""Scheduling without kube-scheduler: pods in turn, through the same phases that it would ask for.

The pod that matters most is first, then the one that came first. To decide never waits; while one pod is bound the
next is decided. A pod that no node takes is told why, and is looked at again when there may be room for it.
"""

import asyncio
from collections.abc import Callable, Collection, Iterable, Sequence
from typing import NamedTuple, Protocol

import structlog

from tessera.errors import BindRefused, InvalidInput, KubeError
from tessera.kube.caching import Change
from tessera.kube.objects import ObjectKey, identify
from tessera.kube.pods import OVER, Pod
from tessera.kube.reconciler import Again
from tessera.kube.timing import SYSTEM_CLOCK, Clock
from tessera.model.extender import BindingArgs
from tessera.scheduler.binding import Binder
from tessera.scheduler.nodes import CachedNode
from tessera.scheduler.other_resources import OtherResources
from tessera.scheduler.phases import Phases
from tessera.scheduler.unplaced import explain_unplaced, insufficient

log: structlog.stdlib.BoundLogger = structlog.get_logger(__name__)
AT_ONCE = 1024
"""Members of a gang wait for each other before they are bound: a gang may have as many."""
TRY_AGAIN_S = 1.0


class Outcomes(Protocol):
    """Told what becomes of pods, for those whose pods they are."""

    def placed(self, pod: Pod, node: str) -> None: ...
    async def not_placed(self, pod: Pod, why: str) -> None: ...


class Decision(NamedTuple):
    """A node, or why there is none."""

    node: str = ""
    why: str = ""


class Loop:
    """`schedulers` are the names under which pods are ours to place; `nodes` are all there are."""

    def __init__(
        self,
        phases: Phases,
        binder: Binder,
        others: OtherResources,
        outcomes: Outcomes,
        *,
        schedulers: Collection[str],
        nodes: Callable[[], Iterable[CachedNode]],
        clock: Clock = SYSTEM_CLOCK,
    ) -> None:
        self._phases = phases
        self._binder = binder
        self._others = others
        self._outcomes = outcomes
        self._schedulers = frozenset(schedulers)
        self._nodes = nodes
        self._clock = clock
        self._waiting: dict[ObjectKey, Pod] = {}
        self._told: dict[str, str] = {}  # by UID: a pod made anew under a name has heard nothing
        self.wanted: Callable[[], None] = lambda: None  # told when there is a pod to look at

    def __len__(self) -> int:
        return len(self._waiting)

    def pod_changed(self, change: Change[Pod]) -> None:
        pod = change.after
        if pod is None and change.before is not None:
            self._others.forget(_uid(change.before))
        before = self._waiting.get(change.key)
        if before is not None and (pod is None or _uid(pod) != _uid(before) or not self._is_waiting(pod)):
            self._forget(before)
            before = None
        if pod is None or not self._is_waiting(pod):
            return
        self._waiting[change.key] = pod
        if before is None or _asks(before) != _asks(pod):
            self.wanted()

    def _is_waiting(self, pod: Pod) -> bool:
        spec = pod.spec
        is_held = spec.scheduling_gates or pod.metadata.deletion_timestamp or pod.status.phase in OVER
        is_held = is_held or self._phases.is_bound(pod)
        return spec.scheduler_name in self._schedulers and not spec.node_name and not is_held

    async def place_waiting(self, _: str) -> Again | None:
        """Everybody who waits has a turn. Where that led to nothing there is another one soon.

        What was offered to others stands in the way, but not for long, and nobody is told when it is over.
        """
        turns, done, refused = asyncio.Semaphore(AT_ONCE), list[bool](), False

        async def carry_out(pod: Pod, decision: Decision) -> None:
            async with turns:
                if decision.node:
                    done.append(await self._bind(pod, decision.node))
                else:
                    done.append(await self._tell(pod, decision.why))

        async with asyncio.TaskGroup() as tasks:
            for pod in in_order(self._waiting.values()):
                if not self._still_waits(pod):
                    continue
                decision = self._decide(pod)
                refused |= not decision.node
                tasks.create_task(carry_out(pod, decision))
                await asyncio.sleep(0)  # others have their turn too
        return Again(TRY_AGAIN_S) if not all(done) or (refused and self._phases.offers.nodes()) else None

    def _still_waits(self, pod: Pod) -> bool:
        """Not so, if it is gone by now or has gone and come again."""
        waiting = self._waiting.get(identify(pod).key)
        return waiting is not None and _uid(waiting) == _uid(pod)

    def _decide(self, pod: Pod) -> Decision:
        asked, lacking, names = self._others.asked_by(pod), list[str](), list[str]()
        for node in self._nodes():
            missing = self._others.lacking(asked, node)
            if missing is None:
                names.append(node.metadata.name)
            else:
                lacking.append(insufficient(missing))
        try:
            verdict = self._phases.place(pod, names, self._clock.monotonic_s())
        except InvalidInput as error:
            return Decision(why=str(error))
        if verdict.passed:
            self._others.promise(pod, verdict.passed[0], asked)
            return Decision(node=verdict.passed[0])
        sentences = (*lacking, *verdict.failed.values(), *verdict.hopeless.values())
        chooses_nodes = bool(pod.spec.node_selector or pod.spec.affinity)
        return Decision(why=explain_unplaced(sentences, chooses_nodes=chooses_nodes))

    async def _bind(self, pod: Pod, node: str) -> bool:
        key, uid, _ = identify(pod)
        args = BindingArgs(pod_name=key.name, pod_namespace=key.namespace, pod_uid=uid or "", node=node)
        try:
            await self._binder.bind(args)
        except BindRefused as error:
            self._others.forget(uid or "")
            self._phases.offers.withdraw(uid or "")
            await self._tell(pod, str(error))
            return False
        self._forget(pod)
        self._outcomes.placed(pod, node)
        return True

    async def _tell(self, pod: Pod, why: str) -> bool:
        """Once: nobody is woken by what they know. False, if it could not be told."""
        if not self._still_waits(pod) or self._told.get(_uid(pod)) == why:
            return True
        try:
            await self._outcomes.not_placed(pod, why)
        except KubeError as error:
            log.warning("pod not told why it waits", pod=str(identify(pod).key), error=str(error))
            return False
        if self._still_waits(pod):
            self._told[_uid(pod)] = why
        return True

    def _forget(self, pod: Pod) -> None:
        """The pod waits no longer; the watch may tell later. Another one of its name goes on waiting."""
        if self._still_waits(pod):
            del self._waiting[identify(pod).key]
        self._told.pop(_uid(pod), None)


def in_order(pods: Iterable[Pod]) -> Sequence[Pod]:
    """The highest priority first, then the oldest."""
    return sorted(pods, key=lambda pod: (-(pod.spec.priority or 0), pod.metadata.creation_timestamp or "", _name(pod)))


def _uid(pod: Pod) -> str:
    return pod.metadata.uid or ""


def _name(pod: Pod) -> tuple[str, str]:
    return pod.metadata.namespace or "", pod.metadata.name or ""


def _asks(pod: Pod) -> tuple[object, ...]:
    """What of a pod may change where it can be."""
    return pod.metadata.uid, pod.spec, pod.metadata.annotations, pod.metadata.labels
