"""Users hear of their pods once, and again when there is news."""

from typing import Any

import pytest

from tessera.kube.event_series import ObjectReference
from tessera.model.requests import PodRef
from tessera.scheduler.telling import OTHER_AGAIN_S, SAME_AGAIN_S, Teller
from tests.unit.kube.clocks import FakeClock

WEB = PodRef("default", "web", "uid-web")


class Heard:
    """Takes the place of a recorder."""

    def __init__(self) -> None:
        self.events: list[tuple[str, str, str]] = []
        self.about: list[ObjectReference] = []

    def normal(self, about: ObjectReference, reason: str, message: str) -> None:
        self._hear("Normal", about, reason, message)

    def warning(self, about: ObjectReference, reason: str, message: str) -> None:
        self._hear("Warning", about, reason, message)

    def _hear(self, level: str, about: ObjectReference, reason: str, message: str) -> None:
        self.events.append((level, reason, message))
        self.about.append(about)


@pytest.fixture
def heard() -> Heard:
    return Heard()


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
def teller(heard: Any, clock: FakeClock) -> Teller:
    return Teller(heard, clock=clock)


def test_a_refused_pod_is_told_why_once(teller: Teller, heard: Heard, clock: FakeClock):
    for _ in range(50):
        teller.refused(WEB, "no room")
        clock.advance(SAME_AGAIN_S / 60)
    assert heard.events == [("Warning", "FilteringFailed", "no room")]
    assert heard.about == [ObjectReference(kind="Pod", name="web", namespace="default", uid="uid-web")]
    clock.advance(SAME_AGAIN_S)
    teller.refused(WEB, "no room")
    assert len(heard.events) == 2


def test_other_words_are_told_after_a_moment(teller: Teller, heard: Heard, clock: FakeClock):
    teller.refused(WEB, "no room")
    teller.refused(WEB, "less room")
    assert len(heard.events) == 1
    clock.advance(OTHER_AGAIN_S)
    teller.refused(WEB, "less room")
    assert [message for _, _, message in heard.events] == ["no room", "less room"]


def test_each_pod_is_told_of_itself(teller: Teller, heard: Heard):
    teller.refused(WEB, "no room")
    teller.refused(PodRef("default", "web", "uid-of-its-successor"), "no room")
    assert len(heard.events) == 2


def test_a_bind_is_told_by_kube_scheduler_and_not_again_by_us(teller: Teller, heard: Heard):
    teller.bound(WEB, "gpu-7")
    assert not heard.events


def test_binding_is_told_in_the_words_of_hami_where_somebody_wants_them(heard: Heard):
    teller = Teller(heard, tells_binds=True)  # type: ignore[arg-type] # as much of a recorder as is asked
    teller.not_bound(WEB, "the card was taken")
    teller.bound(WEB, "gpu-7")
    assert heard.events == [
        ("Warning", "BindingFailed", "the card was taken"),
        ("Normal", "BindingSucceed", "Successfully binding node [gpu-7] to default/web"),
    ]
