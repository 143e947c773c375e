"""What nodes say beside their registers: locks, links and cordons."""

from datetime import UTC, datetime

import pytest

from tessera.errors import InvalidAnnotation
from tessera.model.annotations.links import decode_links, encode_links
from tessera.model.annotations.locks import NodeLock, decode_lock, encode_lock, read_locks
from tessera.model.annotations.selectors import decode_cordon, encode_cordon, read_soft_vnpu
from tessera.model.annotations.times import rfc3339
from tessera.model.devices import Link

AT = datetime(2026, 8, 21, 10, 0, 5, tzinfo=UTC)
LOCK = "node gpu-07: hami.io/mutex.lock"
SCORE = "node gpu-07: hami.io/node-nvidia-score"


@pytest.mark.parametrize(
    ("text", "lock"),
    [
        ("2026-08-21T10:00:05Z,default,trainer-0", NodeLock(AT, "default", "trainer-0")),
        ("2026-08-21T12:00:05+02:00, default ,trainer-0 ", NodeLock(AT, "default", "trainer-0")),
        ("2026-08-21T10:00:05Z", NodeLock(AT)),
    ],
)
def test_a_lock_is_read_with_and_without_its_owner(text: str, lock: NodeLock):
    assert decode_lock(text, LOCK) == lock


def test_a_lock_is_written_as_hami_compares_it():
    assert encode_lock(NodeLock(AT, "default", "trainer-0")) == "2026-08-21T10:00:05Z,default,trainer-0"
    assert encode_lock(NodeLock(AT)) == "2026-08-21T10:00:05Z"


@pytest.mark.parametrize("text", ["", "soon,default,p", "2026-08-21T10:00:05Z,default", "2026-02-30T10:00:05Z"])
def test_a_lock_that_cannot_be_read_is_refused(text: str):
    with pytest.raises(InvalidAnnotation) as error:
        decode_lock(text, LOCK)
    expected = 'expected time, namespace and pod such as "2026-08-21T10:00:05Z,default,train-0"'
    assert str(error.value) == f'{LOCK} is "{text}", {expected}'


def test_a_lock_with_half_an_owner_is_not_written():
    with pytest.raises(InvalidAnnotation, match=r'^node lock: pod is "", expected a name$'):
        encode_lock(NodeLock(AT, "default"))


def test_links_are_reported_by_both_cards_and_read_once():
    text = '[{"uuid":"GPU-a","score":{"GPU-b":1200}},{"uuid":"GPU-b","score":{"GPU-a":1200,"GPU-b":5}}]'
    assert decode_links(text, SCORE).links == (Link("GPU-a", "GPU-b", 1200),)
    assert decode_links(text, SCORE).complaints == ()
    assert encode_links([Link("GPU-a", "GPU-b", 1200)]) == text.replace(',"GPU-b":5', "")


@pytest.mark.parametrize(("back", "said"), [('{"GPU-a":100}', "100"), ("{}", "nothing"), ("null", "nothing")])
def test_a_link_that_two_cards_see_differently_counts_as_nothing(back: str, said: str):
    reading = decode_links(f'[{{"uuid":"GPU-b","score":{back}}},{{"uuid":"GPU-a","score":{{"GPU-b":200}}}}]', SCORE)
    assert reading.links == (Link("GPU-a", "GPU-b", 0),)
    assert reading.complaints == (
        f"{SCORE}: the link of GPU-a and GPU-b scores 200 one way and {said} the other, expected the same; "
        "it counts as 0",
    )


def test_a_score_that_is_no_number_is_refused():
    with pytest.raises(InvalidAnnotation) as error:
        decode_links('[{"uuid":"GPU-a","score":{"GPU-b":"fast"}}]', SCORE)
    assert str(error.value) == f'{SCORE} card 0 score: score of GPU-b is "fast", expected a whole number such as 1200'


@pytest.mark.parametrize("links", [[Link("a", "a", 1)], [Link("a", "b", 1), Link("b", "a", 2)]])
def test_links_that_are_no_pairs_are_not_written(links: list[Link]):
    with pytest.raises(InvalidAnnotation, match=r"is not one pair, expected two cards and each pair once$"):
        encode_links(links)


def test_a_cordon_is_a_list_of_cards():
    assert decode_cordon(" GPU-b ,GPU-a,,GPU-b") == {"GPU-a", "GPU-b"}
    assert decode_cordon("") == frozenset()
    assert encode_cordon({"GPU-b", "GPU-a"}) == "GPU-a,GPU-b"


def test_the_locks_of_all_peers_are_read():
    at = "2026-08-21T10:00:05Z"
    locks = read_locks(
        {"hami.io/mutex.lock": f"{at},default,p", "volcano.sh/mutex.lock": at, "cambricon.com/dsmlu.lock": at}, "node n"
    )
    assert {key: lock.pod for key, lock in locks.items()} == {
        "hami.io/mutex.lock": "p",
        "volcano.sh/mutex.lock": "",
        "cambricon.com/dsmlu.lock": "",
    }
    assert {rfc3339(lock.at) for lock in locks.values()} == {at}
    assert read_locks({"hami.io/mutex.lock": ""}, "node n") == {}
    with pytest.raises(InvalidAnnotation, match=r'^node n: cambricon.com/dsmlu.lock is "now"'):
        read_locks({"cambricon.com/dsmlu.lock": "now"}, "node n")


def test_a_node_says_whether_it_cuts_ascend_cards_by_software():
    assert read_soft_vnpu({"hami-vnpu-core": "true"}, "node n")
    assert not read_soft_vnpu({"hami-vnpu-core": "false"}, "node n")
    assert not read_soft_vnpu({}, "node n")
    with pytest.raises(InvalidAnnotation) as error:
        read_soft_vnpu({"hami-vnpu-core": "perhaps"}, "node n")
    assert str(error.value) == 'node n: hami-vnpu-core is "perhaps", expected "true" or "false"'
