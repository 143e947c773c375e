"""A pod that was refused is woken when it fits, once for each change, and a few at a time."""

import msgspec
import pytest

from tessera.kube.caching import Change
from tessera.kube.objects import ObjectKey
from tessera.kube.pods import CACHED_PODS
from tessera.kube.reconciler import Again
from tessera.model.requests import PodRef, PodRequest
from tessera.scheduler.waking import AT_ONCE, Waiting
from tests.builders import a_pod, a_want

pytestmark = pytest.mark.asyncio
REQUEST = a_pod(a_want(memory_mib=1))


class Patches:
    """What would be written to the API."""

    def __init__(self) -> None:
        self.woken: list[str] = []
        self.fails = False

    async def patch(self, _kind: object, name: str, _body: object, **_where: str) -> None:
        if self.fails:
            raise ConnectionError(name)
        self.woken.append(name)


def a_waiting(*names: str, fits: bool) -> tuple[Waiting, Patches]:
    patches = Patches()
    waiting = Waiting(patches, lambda _, __: fits, lambda _: REQUEST)  # type: ignore[arg-type] # it patches and does nothing else
    for name in names:
        waiting.remember(PodRef("default", name, f"uid-{name}"), REQUEST)
    return waiting, patches


async def test_a_pod_that_does_not_fit_is_left_alone():
    waiting, patches = a_waiting("web", fits=False)
    waiting.note_change()
    assert await waiting.wake("all") is None
    assert patches.woken == []


async def test_a_pod_that_fits_is_woken_once_for_each_change():
    waiting, patches = a_waiting("web", fits=True)
    waiting.note_change()
    for _ in range(3):
        await waiting.wake("all")
        waiting.remember(PodRef("default", "web", "uid-web"), REQUEST)
    assert patches.woken == ["web"]
    waiting.note_change()
    await waiting.wake("all")
    assert patches.woken == ["web", "web"]


async def test_of_many_a_few_are_woken_and_the_others_after_them():
    names = [f"web-{number:02}" for number in range(AT_ONCE + 3)]
    waiting, patches = a_waiting(*names, fits=True)
    waiting.note_change()
    assert isinstance(await waiting.wake("all"), Again)
    assert patches.woken == names[:AT_ONCE]
    assert await waiting.wake("all") is None
    assert patches.woken == names


async def test_equal_pods_are_judged_once():
    asked: list[PodRequest] = []
    waiting = Waiting(Patches(), lambda _, request: bool(asked.append(request)), lambda _: REQUEST)  # type: ignore[arg-type] # as above
    for number in range(1000):
        waiting.remember(PodRef("default", f"web-{number}", f"uid-{number}"), REQUEST)
    waiting.note_change()
    await waiting.wake("all")
    assert asked == [REQUEST]


async def test_a_pod_that_is_bound_or_gone_waits_no_longer():
    waiting, _ = a_waiting("bound", "gone", "still", fits=True)
    bound = CACHED_PODS.decode(BOUND, "pods")
    gone = CACHED_PODS.decode(BOUND.replace(b"bound", b"gone").replace(b'"nodeName":"gpu-1",', b""), "pods")
    waiting.pod_changed(Change(ObjectKey("default", "bound"), None, bound))
    waiting.pod_changed(Change(ObjectKey("default", "gone"), gone, None))
    assert len(waiting) == 1


async def test_a_pod_that_was_refused_before_we_started_is_woken_once_when_it_fits():
    waiting, patches = a_waiting(fits=True)
    waiting.pod_changed(Change(ObjectKey("default", "new"), None, CACHED_PODS.decode(a_waiting_pod("new"), "pods")))
    found: list[str] = []
    waiting.found = lambda: found.append("look")
    refused = CACHED_PODS.decode(a_waiting_pod("old", REFUSED), "pods")
    waiting.pod_changed(Change(ObjectKey("default", "old"), None, refused))
    assert found == ["look"]
    for _ in range(2):
        waiting.note_change()
        await waiting.wake("all")
    assert patches.woken == ["old"]
    waiting.pod_changed(Change(ObjectKey("default", "old"), refused, refused))
    assert len(waiting) == 0, "who refuses it now, if not we, is no business of ours"


async def test_a_pod_of_whose_refusal_before_us_we_hear_late_is_woken_once_when_it_fits():
    waiting, patches = a_waiting(fits=True)
    fresh, refused = (CACHED_PODS.decode(a_waiting_pod("old", *said), "pods") for said in ((), (REFUSED,)))
    waiting.pod_changed(Change(ObjectKey("default", "old"), None, fresh))
    waiting.pod_changed(Change(ObjectKey("default", "old"), fresh, refused))
    for _ in range(2):
        waiting.note_change()
        await waiting.wake("all")
    assert patches.woken == ["old"]


async def test_a_pod_from_before_whose_waking_fails_is_woken_the_next_time():
    waiting, patches = a_waiting(fits=True)
    refused = CACHED_PODS.decode(a_waiting_pod("old", REFUSED), "pods")
    waiting.pod_changed(Change(ObjectKey("default", "old"), None, refused))
    patches.fails = True
    with pytest.raises(ConnectionError):
        await waiting.wake("all")
    patches.fails = False
    await waiting.wake("all")
    assert patches.woken == ["old"]


async def test_a_pod_from_before_that_we_refuse_again_is_ours_to_wake():
    waiting, patches = a_waiting(fits=True)
    refused = CACHED_PODS.decode(a_waiting_pod("old", REFUSED), "pods")
    waiting.pod_changed(Change(ObjectKey("default", "old"), None, refused))
    for _ in range(2):
        waiting.remember(PodRef("default", "old", "uid-old"), REQUEST)
        waiting.note_change()
        await waiting.wake("all")
    assert patches.woken == ["old", "old"]


async def test_a_pod_that_was_woken_is_left_alone_until_we_have_refused_it_again():
    waiting, patches = a_waiting(fits=True)
    waiting.remember(PodRef("default", "web", "uid-web"), REQUEST)
    for _ in range(3):
        waiting.note_change()
        await waiting.wake("all")
    assert patches.woken == ["web"], "others refuse it now"


def a_waiting_pod(name: str, *conditions: dict[str, str]) -> bytes:
    metadata = {"name": name, "namespace": "default", "uid": f"uid-{name}"}
    status = {"conditions": list(conditions)}
    return msgspec.json.encode({"metadata": metadata, "spec": {"containers": [{"name": "main"}]}, "status": status})


REFUSED = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable"}
BOUND = (
    b'{"metadata":{"name":"bound","namespace":"default","uid":"uid-bound"},'
    b'"spec":{"nodeName":"gpu-1","containers":[{"name":"main"}]}}'
)
