"""Gangs: pods that start together or not at all.

Until as many are there as it takes nobody is given a place, so two gangs that arrive by halves hold nothing that the
other needs. Then all that wait are planned at once, and each is sent to the place that is reserved for it. What is not
bound in time, or whose neighbour cannot be bound, is free again.
"""

from collections.abc import Callable, Iterable
from typing import NamedTuple

import structlog

from tessera.engine.gangs import GangPlan, Member, plan_gang
from tessera.errors import BindRefused, ClaimUnmet, InvalidInput
from tessera.kube.caching import Change
from tessera.kube.objects import ObjectKey
from tessera.kube.pods import Pod
from tessera.model.pods import read_pod_ref
from tessera.model.refusals import Reason, Refusal, render
from tessera.model.requests import PodRef, PodRequest
from tessera.scheduler.claims import claim_of
from tessera.scheduler.gang_members import GangMembers, standing_of
from tessera.scheduler.gang_sizes import GangObject
from tessera.scheduler.offers import Offers
from tessera.scheduler.rallies import Rallies
from tessera.scheduler.shunning import Shunned
from tessera.scheduler.world import World

log: structlog.stdlib.BoundLogger = structlog.get_logger(__name__)
PLAN_S = 30.0
ONE_EACH = "name the same claim, which is Exclusive; make it Shared, or give each of them a claim of its own"
MOST_PLANS = 16


class _Failure(NamedTuple):
    """Why a gang has no places, and what that depends on: while it is the same there is no need to try again."""

    state: tuple[int, ...]
    until_s: float
    why: str


class Gate(NamedTuple):
    """Where a member of a gang is to go, or why it waits."""

    node: str = ""
    why: str = ""


class Gangs:
    """`within_quota` says whether a namespace may hold more. `planned` is told when a gang has its places."""

    def __init__(self, world: World, offers: Offers, within_quota: Callable[[str, PodRequest], bool]) -> None:
        self._world = world
        self._offers = offers
        self._within_quota = within_quota
        self.members = GangMembers(world)
        self._plan_of: dict[str, ObjectKey] = {}
        self._planning: dict[str, Pod] = {}
        self._shunned = Shunned()
        self._changes = 0
        self.rallies = Rallies()
        self._failed: dict[ObjectKey, _Failure] = {}
        world.is_planned = self._is_planned
        self.planned: Callable[[], None] = lambda: None

    def gang_changed(self, change: Change[GangObject]) -> None:
        self.members.sizes.gang_changed(change)
        self._changes += 1
        self._world.freed()

    def group_changed(self, change: Change[GangObject]) -> None:
        self.members.sizes.group_changed(change)
        self._changes += 1
        self._world.freed()

    def pod_changed(self, change: Change[Pod]) -> None:
        """A member that comes may complete its gang; one that is gone needs no place any more."""
        pod, before = change.after or change.before, change.before
        if pod is None:
            return
        gang, uid = self.members.gang_of(pod), pod.metadata.uid or ""
        if gang is None and (before is None or self.members.gang_of(before) is None):
            return
        if before is None or change.after is None or standing_of(before) != standing_of(pod):
            self._changes += 1
        if gang is None:
            return
        if change.after is None:
            self._shunned.forget(uid)
            self._failed.pop(gang, None)
            self.rallies.forgive(gang)
            self.release_plan(uid)
        elif pod.spec.node_name:
            self._plan_of.pop(uid, None)
        elif before is None:
            self.rallies.forgive(gang)
            self._world.freed()

    def gate(self, pod: object, names: Iterable[str] | None, now_s: float) -> Gate | None:
        """Where the pod is to go, or why nowhere yet; None, if it may go anywhere. `names` are where it could."""
        gang = self.members.gang_of(pod)
        if gang is None:
            return None
        self._offers.expire(now_s)
        uid, possible = read_pod_ref(pod).uid, None if names is None else set(names)
        for _ in range(MOST_PLANS):
            promised = self.promised_node(uid)
            if promised and (possible is None or promised in possible):
                return Gate(node=promised)
            if promised:
                self._shunned.shun(uid, promised, now_s)
                self.release_plan(uid)
            why = self._plan(gang, now_s)
            if why is not None:
                return Gate(why=why) if why else None
            if not self.promised_node(uid):
                break
        return Gate(why=_unplaced(gang, 1, 0))

    def promised_node(self, uid: str) -> str:
        held = self._offers.firm(uid)
        return held.allocation.node if held is not None else ""

    async def rally(self, pod: Pod) -> None:
        """Before a member is bound: wait until all can be. BindRefused, if they cannot, or its place is gone."""
        uid = pod.metadata.uid or ""
        gang = self._plan_of.get(uid) or self.members.gang_of(pod)
        if gang is None:
            return
        if uid in self._plan_of:
            await self.rallies.join(gang, uid)
        elif self.members.is_waiting(pod) and self.members.muster(gang).is_short:
            raise BindRefused(f"the gang {gang} has given back the place that was kept for the pod; it is planned anew")

    def expire(self, now_s: float) -> None:
        """Places that were not taken in time are free, and who was left alone may be tried again."""
        self._offers.expire(now_s)
        if self.rallies.expire(now_s):
            self._world.freed()

    def is_promised(self, pod: PodRef) -> bool:
        return bool(self.promised_node(pod.uid))

    def _is_planned(self, uid: str) -> bool:
        return uid in self._planning or bool(self.promised_node(uid))

    def release_plan(self, uid: str) -> None:
        """This member is not bound where it was to be: what was kept for the others is free."""
        gang = self._plan_of.get(uid)
        if gang is None:
            return
        for member in [member for member, of in self._plan_of.items() if of == gang]:
            del self._plan_of[member]
            self._offers.withdraw(member)
        self.rallies.call_off(gang)
        log.info("gang gave its places back", gang=str(gang))
        self._world.freed()

    def _plan(self, gang: ObjectKey, now_s: float) -> str | None:
        """Reserve places. Why there are none; empty, if the gang needs none any more."""
        if self.rallies.is_left_alone(gang, now_s):
            return render(Refusal(Reason.GANG_SCATTERED, detail=str(gang)))
        known = self._failed.get(gang)
        if known is not None and known.state == self._state() and now_s < known.until_s:
            return known.why
        why = self._plan_anew(gang, now_s)
        if why:
            self._failed[gang] = _Failure(self._state(), self._shunned.until_s(now_s), why)
        else:
            self._failed.pop(gang, None)
        return why

    def _state(self) -> tuple[int, ...]:
        """The same while nobody has come, gone or changed: cards, claims, quotas, sizes of gangs, their members."""
        return self._world.ledger.fleet.sequence, self._world.revision, self._changes

    def _plan_anew(self, gang: ObjectKey, now_s: float) -> str | None:
        present, size, waiting = muster = self.members.muster(gang)
        needed = muster.needed
        if size is None:
            return render(Refusal(Reason.GANG_UNKNOWN, detail=str(gang)))
        if present < size:
            return render(Refusal(Reason.GANG_INCOMPLETE, need=size, have=present, detail=str(gang)))
        if needed <= 0:
            return ""
        asked, unmet = self._ask_all(waiting, now_s)
        if len(asked) < needed:
            return unmet
        pods = {pod.metadata.uid or "": pod for pod in waiting}
        if len({_served_alone(pods[member.ref.uid], member.request) for member in asked}) < needed:
            return render(Refusal(Reason.CLAIM_INVALID, detail=f"members of the gang {gang} {ONE_EACH}"))
        return self._reserve(gang, pods, asked, needed, now_s)

    def _reserve(
        self, gang: ObjectKey, pods: dict[str, Pod], members: list[Member], needed: int, now_s: float
    ) -> str | None:
        for member in members:
            self._offers.withdraw(member.ref.uid)
        self._planning = pods
        try:
            outcome = self._try(members, needed, now_s)
            if not outcome.placed and self._offers.nodes():
                self._offers.withdraw_soft()
                outcome = self._try(members, needed, now_s)
        finally:
            self._planning = {}
        if not outcome.placed:
            return _unplaced(gang, needed, outcome.most)
        self.rallies.begin(gang, needed)
        for uid in outcome.placed:
            self._offers.keep(uid)
            self._plan_of[uid] = gang
        log.info("gang planned", gang=str(gang), members=len(outcome.placed), needed=needed)
        self.planned()
        return None

    def _try(self, members: list[Member], needed: int, now_s: float) -> GangPlan:
        def ask(member: Member) -> PodRequest | None:
            """Those who have their places may have its claim, too."""
            asked, _ = self._ask_all([self._planning[member.ref.uid]], now_s)
            request = asked[0].request if asked else None
            return request if request and self._within_quota(member.ref.namespace, request) else None

        ledger, decider = self._world.ledger, self._world.decider
        return plan_gang(ledger, decider, members, needed, expires_at=now_s + PLAN_S, ask=ask)

    def _ask_all(self, pods: Iterable[Pod], now_s: float) -> tuple[list[Member], str]:
        """Those whose claims can be had as things stand, and why that of another cannot, if there is one."""
        members, unmet = list[Member](), list[str]()
        for pod in pods:
            try:
                ref = read_pod_ref(pod)
                members.append(Member(ref, self._shunned.narrow(ref.uid, self._world.request_of(pod), now_s)))
            except ClaimUnmet as error:
                unmet.append(str(error))
            except InvalidInput as error:
                unmet.append(render(Refusal(Reason.CLAIM_INVALID, detail=str(error))))
        return members, min(unmet, default="")


def _served_alone(pod: Pod, request: PodRequest) -> str:
    """By what a pod can be told from those that can go at the same time: one claim to cards of one's own serves one."""
    named = claim_of(pod) if request.claim is not None and request.claim.is_exclusive else ()
    return named[0] if named else pod.metadata.uid or ""


def _unplaced(gang: ObjectKey, needed: int, most: int) -> str:
    return render(Refusal(Reason.GANG_UNPLACED, need=needed, have=most, detail=str(gang)))
