"""Which events are written: equal ones counted, similar ones put together, too many let go."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tessera.kube.event_series import (
    BURST,
    COMBINED,
    MOST_MESSAGE_BYTES,
    MOST_SIMILAR,
    REMEMBERED,
    SIMILAR_WITHIN_S,
    Correlator,
    Entry,
    ObjectReference,
    Occurrence,
    shorten,
)

POD = ObjectReference(kind="Pod", name="web-0", namespace="n", uid="u", resource_version="1")
POD_LATER = ObjectReference(kind="Pod", name="web-0", namespace="n", uid="u", resource_version="2")


def told(message: str = "it is so", about: ObjectReference = POD, reason: str = "Failed") -> Occurrence:
    return Occurrence(about=about, level="Warning", reason=reason, message=message)


def write(correlator: Correlator, occurrence: Occurrence, now_s: float = 0.0) -> Entry:
    entry = correlator.plan(occurrence, now_s)
    assert entry is not None
    correlator.written(entry, entry.name or f"event-{entry.message}")
    return entry


def test_equal_events_are_counted_whatever_state_of_the_object_was_seen() -> None:
    correlator = Correlator()
    first, second = write(correlator, told()), write(correlator, told(about=POD_LATER))

    assert (first.name, first.count) == ("", 1)
    assert (second.name, second.count) == ("event-it is so", 2)


@pytest.mark.parametrize(
    "other", [told(reason="Killed"), told("else"), told(about=ObjectReference(kind="Pod", name="x"))]
)
def test_different_events_are_apart(other: Occurrence) -> None:
    correlator = Correlator()
    write(correlator, told())

    assert write(correlator, other).count == 1


def test_many_similar_events_are_put_together() -> None:
    correlator = Correlator()
    for number in range(MOST_SIMILAR):
        write(correlator, told(f"try {number}"))

    combined = [write(correlator, told(f"try {number}")) for number in (100, 101)]

    assert [entry.message for entry in combined] == [COMBINED + "try 100", COMBINED + "try 101"]
    assert [entry.count for entry in combined] == [1, 2]


def test_similar_events_are_apart_again_after_a_quiet_time() -> None:
    correlator = Correlator()
    for number in range(MOST_SIMILAR + 1):
        write(correlator, told(f"try {number}"))

    assert write(correlator, told("try 99"), SIMILAR_WITHIN_S + 1).message == "try 99"


def test_an_object_that_talks_without_end_is_heard_once_in_a_while() -> None:
    correlator = Correlator()
    heard = [correlator.plan(told(), 0.0) is not None for _ in range(int(BURST) + 5)]

    assert heard == [True] * int(BURST) + [False] * 5
    assert correlator.plan(told(about=POD_LATER), 300.0) is not None
    assert correlator.plan(told(about=ObjectReference(kind="Pod", name="quiet")), 0.0) is not None


def test_an_event_that_has_expired_is_written_anew() -> None:
    correlator = Correlator()
    write(correlator, told())
    entry = write(correlator, told())

    anew = correlator.vanished(entry)

    assert (anew.name, anew.count) == ("", 1)


def test_what_was_not_written_is_not_counted() -> None:
    correlator = Correlator()
    correlator.plan(told(), 0.0)

    assert write(correlator, told()).count == 1


def test_memory_is_bounded() -> None:
    correlator = Correlator()
    for number in range(REMEMBERED + 100):
        write(correlator, told(about=ObjectReference(kind="Pod", name=f"p{number}")))

    assert write(correlator, told(about=ObjectReference(kind="Pod", name="p0"))).count == 1
    assert write(correlator, told(about=ObjectReference(kind="Pod", name=f"p{REMEMBERED}"))).count == 2


@given(st.text(st.sampled_from("aé€😀"), max_size=1500))
def test_a_message_is_cut_to_what_the_api_server_takes_between_characters(message: str) -> None:
    short = shorten(message)

    assert len(short.encode()) <= MOST_MESSAGE_BYTES
    assert message.startswith(short.removesuffix("…"))
    assert short == message or len(short.encode()) > MOST_MESSAGE_BYTES - 8
