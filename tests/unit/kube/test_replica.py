"""The informer's rounds: where each begins, and that a cache after any history is what the server has."""

import msgspec
import pytest

from tessera.errors import (
    ApiError,
    BadRequest,
    Expired,
    Forbidden,
    Invalid,
    KubeError,
    ServerFailed,
    Unreachable,
    UnreadableReply,
)
from tessera.kube.caching import Cache
from tessera.kube.listing import Page
from tessera.kube.objects import Document, Identity, ObjectKey
from tessera.kube.replica import Position, Replica, after_round
from tessera.kube.watching import Bookmark, EventType, ObjectEvent, Undecodable

WATCHING = Position(resource_version="40")
AT_THE_START = Position()


def refused(kind: type[ApiError], details: dict[str, object] | None = None) -> ApiError:
    return kind("no", verb="watch", target="pods", status=0, reason=kind.code, details=details)


TOO_LARGE = refused(ServerFailed, {"causes": [{"reason": "ResourceVersionTooLarge", "message": "Too large"}]})


def a_pod(name: str, version: int, uid: str = "") -> Document:
    return {"metadata": {"name": name, "uid": uid or name, "resourceVersion": str(version)}}


def a_replica() -> tuple[Replica[Document], list[Undecodable]]:
    reported: list[Undecodable] = []
    return Replica(Cache[Document](), reported.append), reported


def a_watching_replica(*pods: Document) -> Replica[Document]:
    replica, _ = a_replica()
    replica.begin()
    replica.take_list(Page(pods, "40"))
    replica.end()
    replica.begin()
    return replica


def names_of(replica: Replica[Document]) -> list[str]:
    return sorted(pod["metadata"]["name"] for pod in replica.cache)


def test_a_watch_that_ended_in_order_is_resumed_at_once() -> None:
    assert after_round(WATCHING, progressed=True, error=None) == WATCHING


def test_a_dropped_watch_is_resumed_where_it_was_after_a_pause() -> None:
    after = after_round(WATCHING, progressed=True, error=Unreachable("cut"))

    assert (after.resource_version, after.failures) == ("40", 1)


def test_each_round_that_gets_nowhere_is_one_more_failure() -> None:
    once = after_round(WATCHING, progressed=False, error=None)
    twice = after_round(once, progressed=False, error=Unreachable("refused"))

    assert (once.failures, twice.failures) == (1, 2)


def test_a_round_that_got_somewhere_begins_to_count_anew() -> None:
    tried = msgspec.structs.replace(WATCHING, failures=7)

    assert after_round(tried, progressed=True, error=Unreachable("cut")).failures == 1


@pytest.mark.parametrize("error", [refused(Expired), TOO_LARGE])
def test_a_position_that_the_server_does_not_know_is_given_up(error: ApiError) -> None:
    assert after_round(WATCHING, progressed=False, error=error).resource_version == ""


@pytest.mark.parametrize(
    "error", [refused(BadRequest), refused(Invalid), refused(Forbidden), UnreadableReply("no end")]
)
def test_a_server_that_refuses_initial_events_is_listed_at_once(error: KubeError) -> None:
    after = after_round(AT_THE_START, progressed=False, error=error)

    assert (after.streams_initial_events, after.failures) == (False, 0)


def test_a_refusal_in_a_later_round_says_nothing_about_initial_events() -> None:
    assert after_round(WATCHING, progressed=False, error=refused(Forbidden)).streams_initial_events


def test_initial_events_are_told_all_at_once_at_their_end() -> None:
    replica, _ = a_replica()
    replica.begin()
    early = [
        *replica.take(ObjectEvent(EventType.ADDED, a_pod("a", 1))),
        *replica.take(ObjectEvent(EventType.ADDED, a_pod("b", 2))),
        *replica.take(ObjectEvent(EventType.DELETED, a_pod("b", 3))),
    ]

    changes = replica.take(Bookmark("9", is_synced=True))

    assert early == []
    assert [change.key.name for change in changes] == ["a"]
    assert replica.position.resource_version == "9"


def test_what_is_deleted_while_everything_is_taken_in_is_not_there_even_if_it_is_odd() -> None:
    replica = a_watching_replica(a_pod("a", 1))
    replica.end(refused(Expired))
    replica.begin()
    identity = Identity(ObjectKey("", "a"), "a", "41")
    replica.take(Undecodable(EventType.ADDED, identity, "odd"))
    replica.take(Undecodable(EventType.DELETED, identity, "odd"))

    replica.take(Bookmark("50", is_synced=True))

    assert names_of(replica) == []


def test_half_of_the_initial_events_is_worth_nothing() -> None:
    replica, _ = a_replica()
    replica.begin()
    replica.take(ObjectEvent(EventType.ADDED, a_pod("gone-meanwhile", 1)))
    replica.end(Unreachable("cut"))

    position = replica.begin()
    replica.take(ObjectEvent(EventType.ADDED, a_pod("a", 2)))
    replica.take(Bookmark("9", is_synced=True))

    assert position.resource_version == ""
    assert names_of(replica) == ["a"]


def test_a_server_that_ignores_the_wish_for_initial_events_is_found_out() -> None:
    replica, _ = a_replica()
    replica.begin()

    with pytest.raises(UnreadableReply, match="before the end of the initial events"):
        replica.take(Bookmark("9", is_synced=False))


def test_events_and_bookmarks_move_the_position() -> None:
    replica = a_watching_replica()

    replica.take(ObjectEvent(EventType.ADDED, a_pod("a", 41)))
    after_event = replica.position.resource_version
    replica.take(Bookmark("50", is_synced=False))

    assert (after_event, replica.position.resource_version) == ("41", "50")


def test_an_object_that_stopped_decoding_stays_known_until_it_is_deleted() -> None:
    replica = a_watching_replica(a_pod("a", 1))
    identity = Identity(ObjectKey("", "a"), "a", "41")

    kept = replica.take(Undecodable(EventType.MODIFIED, identity, "odd"))
    moved_to = replica.position.resource_version
    gone = replica.take(Undecodable(EventType.DELETED, identity, "odd"))

    assert (kept, moved_to) == ([], "41")
    assert [change.after for change in gone] == [None]


def test_what_does_not_decode_is_reported() -> None:
    replica, reported = a_replica()
    odd = Undecodable(EventType.ADDED, Identity(ObjectKey("", "a"), "a", "1"), "odd")
    replica.begin()

    replica.take(odd)
    replica.take_list(Page((), "9", undecodable=(odd,)))

    assert reported == [odd, odd]


def test_a_quiet_watch_that_stood_for_a_while_is_no_failure() -> None:
    replica = a_watching_replica()

    assert replica.end(was_settled=True).failures == 0


def test_a_watch_that_ends_as_soon_as_it_opens_is_waited_out() -> None:
    replica = a_watching_replica()

    assert replica.end(was_settled=False).failures == 1
