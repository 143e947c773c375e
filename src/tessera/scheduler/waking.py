"""Pods that were refused everywhere, woken when there is room for them.

kube-scheduler hears of a freed card when we do, and may ask before we have taken it in. It is refused once more then,
and nothing wakes the pod for minutes. So pods that were refused are remembered, and when one of them fits, its own
annotation is changed, which lets kube-scheduler try it again. A few at a time, because others of the same kind will be
refused again, and each only once until we have refused it again, because others than us may refuse it for ever.

Who was refused before this process began may have been refused by us or by others, and kube-scheduler may tell so only
after it began. Such a pod is woken once when it fits: if it was ours to refuse, we are asked again then.
"""

from collections.abc import Callable

import structlog

from tessera.errors import Conflict, InvalidInput, NotFound
from tessera.kube.caching import Change
from tessera.kube.client import Client
from tessera.kube.kinds import PODS
from tessera.kube.objects import ObjectKey
from tessera.kube.pods import Pod
from tessera.kube.reconciler import Again
from tessera.kube.timing import SYSTEM_CLOCK, Clock
from tessera.model.annotations.keys import WOKEN_AT
from tessera.model.pods import read_pod_ref
from tessera.model.requests import PodRef, PodRequest

log: structlog.stdlib.BoundLogger = structlog.get_logger(__name__)

AT_ONCE = 8
LOOK_AGAIN_S = 2.0
MOST_REMEMBERED = 20_000


class _Waiter:
    __slots__ = ("is_asleep", "is_ours", "request", "woken_for")

    def __init__(self, request: PodRequest | None, *, is_ours: bool) -> None:
        self.request = request
        self.is_ours = is_ours
        self.is_asleep = True
        self.woken_for = -1


class Waiting:
    """`fits` says whether a pod could be placed now, `request_of` what it asks for, if that does not change.

    `is_promised` says that a place is kept for a pod: all of these are woken at once.
    """

    def __init__(
        self,
        client: Client,
        fits: Callable[[PodRef, PodRequest | None], bool],
        request_of: Callable[[Pod], PodRequest | None],
        *,
        is_promised: Callable[[PodRef], bool] = lambda _: False,
        clock: Clock = SYSTEM_CLOCK,
    ) -> None:
        self._client = client
        self._fits = fits
        self._request_of = request_of
        self._is_promised = is_promised
        self._clock = clock
        self._waiters: dict[PodRef, _Waiter] = {}
        self._changes = 0
        self.found: Callable[[], None] = lambda: None  # told of a pod that has waited since before we began

    def __len__(self) -> int:
        return len(self._waiters)

    def remember(self, ref: PodRef, request: PodRequest | None) -> None:
        """The pod was refused by every node. Without a request it is read anew before it is woken."""
        waiter = self._waiters.get(ref)
        if waiter is not None:
            waiter.is_ours = waiter.is_asleep = True
            waiter.request = request
        elif len(self._waiters) < MOST_REMEMBERED:
            self._waiters[ref] = _Waiter(request, is_ours=True)

    def pod_changed(self, change: Change[Pod]) -> None:
        """A pod that is bound or gone waits no longer; one that we did not see refused may have been before us."""
        pod = change.after or change.before
        if pod is None:
            return
        if change.after is None or pod.spec.node_name:
            self._waiters.pop(read_pod_ref(pod), None)
        elif _was_refused(pod) and not (change.before is not None and _was_refused(change.before)):
            self._remember_from_before(pod)

    def _remember_from_before(self, pod: Pod) -> None:
        try:
            request = self._request_of(pod)
        except InvalidInput:
            return
        wants_devices = request is None or request.wants_devices
        if wants_devices and len(self._waiters) < MOST_REMEMBERED:
            self._waiters.setdefault(read_pod_ref(pod), _Waiter(request, is_ours=False))
            self.found()

    def note_change(self) -> None:
        """There may be room that was not there before."""
        self._changes += 1

    async def wake(self, _: str) -> Again | None:
        """Wake the first few that fit; those left are looked at again once these have had their turn."""
        fitting, changes = self._fitting(), self._changes
        promised = [ref for ref in fitting if self._is_promised(ref)]
        others = [ref for ref in fitting if not self._is_promised(ref)]
        for ref in (*promised, *others[:AT_ONCE]):
            if (waiter := self._waiters.get(ref)) is not None:
                if not waiter.is_ours:
                    del self._waiters[ref]
                waiter.woken_for, waiter.is_asleep = changes, False  # before: it may be refused again meanwhile
                try:
                    await self._wake(ref)
                except Exception:
                    waiter.woken_for, waiter.is_asleep = -1, True
                    self._waiters.setdefault(ref, waiter)
                    raise
        return Again(LOOK_AGAIN_S) if len(others) > AT_ONCE else None

    def _fitting(self) -> list[PodRef]:
        """Those that would be placed now. Pods of one namespace that ask for the same are judged together."""
        verdicts: dict[tuple[str, PodRequest], bool] = {}
        fitting = list[PodRef]()
        for ref, waiter in list(self._waiters.items()):
            if waiter.woken_for == self._changes or not waiter.is_asleep:
                continue
            if waiter.request is None:
                fits = self._fits(ref, None)
            else:
                asked = (ref.namespace, waiter.request)
                fits = verdicts[asked] if asked in verdicts else self._fits(ref, waiter.request)
                verdicts[asked] = fits
            if fits:
                fitting.append(ref)
        return fitting

    async def _wake(self, ref: PodRef) -> None:
        change = {"metadata": {"uid": ref.uid, "annotations": {WOKEN_AT: self._clock.wall().isoformat()}}}
        key = ObjectKey(ref.namespace, ref.name)
        try:
            await self._client.patch(PODS, key.name, change, namespace=key.namespace)
        except (NotFound, Conflict):
            return
        log.info("pod woken", pod=str(key))


def _was_refused(pod: Pod) -> bool:
    return any(said.type == "PodScheduled" and said.status == "False" for said in pod.status.conditions or ())
