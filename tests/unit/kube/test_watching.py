"""From bytes to events: nothing is lost between pieces, and nothing odd ends a watch."""

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tessera.errors import Expired, UnreadableReply
from tessera.kube.kinds import PODS
from tessera.kube.objects import Identity, ObjectKey, ObjectMeta
from tessera.kube.requests import Request
from tessera.kube.watching import Bookmark, EventDecoder, EventType, LineSplitter, ObjectEvent, Undecodable

REQUEST = Request(verb="watch", path="/api/v1/pods", target="pods")


class Spec(msgspec.Struct, frozen=True):
    priority: int


class Pod(msgspec.Struct, frozen=True):
    metadata: ObjectMeta
    spec: Spec


DECODER = EventDecoder(PODS.decoded_as(Pod), REQUEST)


@given(st.lists(st.binary().map(lambda line: line.replace(b"\n", b""))), st.binary(max_size=5), st.data())
def test_lines_come_out_as_they_went_in_however_they_were_cut(
    lines: list[bytes], tail: bytes, data: st.DataObject
) -> None:
    tail = tail.replace(b"\n", b"")
    stream = b"".join(line + b"\n" for line in lines) + tail
    cuts = sorted(data.draw(st.lists(st.integers(0, len(stream)))))
    splitter = LineSplitter()

    got = [
        line
        for begin, end in zip([0, *cuts], [*cuts, len(stream)], strict=True)
        for line in splitter.feed(stream[begin:end])
    ]

    assert got == lines
    assert splitter.rest() == tail


def test_an_object_is_decoded_into_the_type_of_its_kind() -> None:
    line = b'{"type":"ADDED","object":{"metadata":{"name":"a","resourceVersion":"7"},"spec":{"priority":3,"x":1}}}'

    event = DECODER.decode(line)

    assert event == ObjectEvent(EventType.ADDED, Pod(ObjectMeta(name="a", resource_version="7"), Spec(3)))


@pytest.mark.parametrize(
    ("annotations", "is_synced"),
    [("", False), (',"annotations":{"k8s.io/initial-events-end":"true"}', True), (',"annotations":{}', False)],
)
def test_a_bookmark_is_read_even_where_it_does_not_fit_the_type(annotations: str, is_synced: bool) -> None:
    metadata = f'{{"resourceVersion":"12"{annotations}}}'
    line = f'{{"type":"BOOKMARK","object":{{"metadata":{metadata},"spec":{{"containers":null}}}}}}'

    assert DECODER.decode(line.encode()) == Bookmark("12", is_synced)


def test_a_bookmark_is_read_where_it_fits_a_plain_document_too() -> None:
    line = b'{"type":"BOOKMARK","object":{"metadata":{"resourceVersion":"12"}}}'

    assert EventDecoder(PODS, REQUEST).decode(line) == Bookmark("12", False)


def test_an_error_event_raises_what_it_says() -> None:
    line = b'{"type":"ERROR","object":{"kind":"Status","reason":"Expired","code":410,"message":"too old"}}'

    with pytest.raises(Expired) as error:
        DECODER.decode(line)

    assert str(error.value) == "watch pods: the API server answered 410 Expired: too old; list again"


def test_an_object_that_does_not_decode_is_named_and_told_why() -> None:
    line = (
        b'{"type":"MODIFIED","object":{"metadata":{"name":"a","namespace":"n","uid":"u","resourceVersion":"9"},'
        b'"spec":{"priority":"high"}}}'
    )

    event = DECODER.decode(line)

    assert isinstance(event, Undecodable)
    assert (event.type, event.identity) == (EventType.MODIFIED, Identity(ObjectKey("n", "a"), "u", "9"))
    assert "priority" in event.problem


@pytest.mark.parametrize("line", [b"<html>", b'{"type":"ADDED"}', b'{"type":"NEW","object":{}}', b"[]", b"\xff"])
def test_a_line_that_is_no_event_is_an_unreadable_reply(line: bytes) -> None:
    with pytest.raises(UnreadableReply, match="watch pods"):
        DECODER.decode(line)
