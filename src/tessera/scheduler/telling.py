"""What people are told about their pods: why one finds no node, where one went, and why one did not.

An event is a write, and most attempts of a waiting pod say what the last one said. So the same words are told again
after a while only, and other words not at once. Events are objects of their own: telling never wakes a pod.
"""

from collections import OrderedDict
from typing import NamedTuple

from tessera.kube.event_series import ObjectReference
from tessera.kube.events import Recorder
from tessera.kube.timing import SYSTEM_CLOCK, Clock
from tessera.model.requests import PodRef

SAME_AGAIN_S = 600.0
OTHER_AGAIN_S = 30.0
MOST_REMEMBERED = 20_000


class _Told(NamedTuple):
    message: str
    at_s: float


class Teller:
    """`tells_binds` is for those who look for HAMi's events; kube-scheduler tells of each pod that it has placed."""

    def __init__(self, recorder: Recorder, *, tells_binds: bool = False, clock: Clock = SYSTEM_CLOCK) -> None:
        self._recorder = recorder
        self._tells_binds = tells_binds
        self._clock = clock
        self._told: OrderedDict[str, _Told] = OrderedDict()

    def refused(self, ref: PodRef, message: str) -> None:
        """No node takes the pod."""
        if self._is_news(ref.uid, message):
            self._recorder.warning(_about(ref), "FilteringFailed", message)

    def bound(self, ref: PodRef, node: str) -> None:
        self._told.pop(ref.uid, None)
        if self._tells_binds:
            self._recorder.normal(_about(ref), "BindingSucceed", f"Successfully binding node [{node}] to {ref}")

    def not_bound(self, ref: PodRef, message: str) -> None:
        if self._is_news(ref.uid, message):
            self._recorder.warning(_about(ref), "BindingFailed", message)

    def _is_news(self, uid: str, message: str) -> bool:
        now_s, told = self._clock.monotonic_s(), self._told.get(uid)
        if told is not None and now_s < told.at_s + (SAME_AGAIN_S if told.message == message else OTHER_AGAIN_S):
            return False
        self._told[uid] = _Told(message, now_s)
        self._told.move_to_end(uid)
        if len(self._told) > MOST_REMEMBERED:
            self._told.popitem(last=False)
        return True


def _about(ref: PodRef) -> ObjectReference:
    return ObjectReference(kind="Pod", name=ref.name, namespace=ref.namespace, uid=ref.uid)
