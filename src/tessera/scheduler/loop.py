"""Scheduling without kube-scheduler: pods in turn, through the same phases that it would ask for.

The pod that matters most is first, then the one that came first. To decide never waits; while one pod is bound the
next is decided. A pod that no node takes is told why, and is looked at again when there may be room for it.
"""

import asyncio
from collections.abc import Callable, Collection, Iterable, Sequence
from typing import NamedTuple, Protocol

from tessera.errors import BindRefused, InvalidInput
from tessera.kube.caching import Change
from tessera.kube.objects import ObjectKey, identify
from tessera.kube.pods import Pod
from tessera.kube.reconciler import Again
from tessera.kube.timing import SYSTEM_CLOCK, Clock
from tessera.model.extender import BindingArgs
from tessera.scheduler.binding import Binder
from tessera.scheduler.nodes import CachedNode
from tessera.scheduler.other_resources import OtherResources
from tessera.scheduler.phases import Phases
from tessera.scheduler.reading import OVER
from tessera.scheduler.unplaced import explain_unplaced, insufficient

AT_ONCE = 16
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
        self._told: dict[ObjectKey, str] = {}
        self.wanted: Callable[[], None] = lambda: None  # told when there is a pod to look at

    def pod_changed(self, change: Change[Pod]) -> None:
        pod = change.after
        if pod is None or not self._is_waiting(pod):
            self._waiting.pop(change.key, None)
            self._told.pop(change.key, None)
            return
        before = self._waiting.get(change.key)
        self._waiting[change.key] = pod
        if before is None or _asks(before) != _asks(pod):
            self.wanted()

    def _is_waiting(self, pod: Pod) -> bool:
        spec = pod.spec
        is_held = spec.scheduling_gates or pod.metadata.deletion_timestamp or pod.status.phase in OVER
        return spec.scheduler_name in self._schedulers and not spec.node_name and not is_held

    async def place_waiting(self, _: str) -> Again | None:
        """Everybody who waits has a turn. Who could not be bound has another one soon, whatever happens meanwhile."""
        turns, bound = asyncio.Semaphore(AT_ONCE), list[bool]()

        async def carry_out(pod: Pod, decision: Decision) -> None:
            async with turns:
                if decision.node:
                    bound.append(await self._bind(pod, decision.node))
                else:
                    await self._tell(pod, decision.why)

        async with asyncio.TaskGroup() as tasks:
            for pod in in_order(self._waiting.values()):
                tasks.create_task(carry_out(pod, self._decide(pod)))
                await asyncio.sleep(0)  # others have their turn too
        return None if all(bound) else Again(TRY_AGAIN_S)

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
            return Decision(node=verdict.passed[0])
        return Decision(why=explain_unplaced((*lacking, *verdict.failed.values(), *verdict.hopeless.values())))

    async def _bind(self, pod: Pod, node: str) -> bool:
        key, uid, _ = identify(pod)
        args = BindingArgs(pod_name=key.name, pod_namespace=key.namespace, pod_uid=uid or "", node=node)
        try:
            await self._binder.bind(args)
        except BindRefused as error:
            await self._tell(pod, str(error))
            return False
        self._outcomes.placed(pod, node)
        return True

    async def _tell(self, pod: Pod, why: str) -> None:
        """Once: nobody is woken by what they know."""
        key = identify(pod).key
        if key in self._waiting and self._told.get(key) != why:
            self._told[key] = why
            await self._outcomes.not_placed(pod, why)


def in_order(pods: Iterable[Pod]) -> Sequence[Pod]:
    """The highest priority first, then the oldest."""
    return sorted(pods, key=lambda pod: (-(pod.spec.priority or 0), pod.metadata.creation_timestamp or "", _name(pod)))


def _name(pod: Pod) -> tuple[str, str]:
    return pod.metadata.namespace or "", pod.metadata.name or ""


def _asks(pod: Pod) -> tuple[object, ...]:
    """What of a pod may change where it can be."""
    return pod.metadata.uid, pod.spec, pod.metadata.annotations, pod.metadata.labels
