"""A sentence is kept until its row changes, and is always what would be said anew."""

import numpy as np

from tessera.engine.deciding import Decider
from tessera.engine.ledger import Ledger
from tessera.engine.policies import PolicyBook
from tessera.engine.sentences import Sentences
from tessera.model.refusals import Reason, Refusal, render
from tessera.model.requests import PodRequest
from tests.builders import a_card, a_node, a_pod, a_ref, a_share, a_want, an_allocation


def test_what_was_said_is_said_again_without_being_worked_out_again():
    fleet = Ledger().fleet
    fleet.put(a_node("a"))
    asked: list[list[int]] = []

    def explain(rows):
        asked.append(rows.tolist())
        return [Refusal(Reason.NO_CARDS, where="a", detail="NVIDIA") for _ in rows]

    sentences, request, rows = Sentences(fleet), a_pod(a_want()), np.array([0])
    first = sentences.of(request, rows, explain)
    assert sentences.of(request, rows, explain) == first
    fleet.touch(0)
    assert sentences.of(request, rows, explain) == first
    assert asked == [[0], [0]]


def said_anew(decider: Decider, request: PodRequest) -> list[str]:
    return [render(refusal).removeprefix(f"{refusal.where}: ") for refusal in decider.refusals(request)]


def test_sentences_follow_what_pods_take_and_give_back():
    ledger = Ledger()
    ledger.put_node(a_node("a", a_card("GPU-a", memory_mib=1000)))
    ledger.put_node(a_node("b", a_card("GPU-b", memory_mib=100)))
    decider = Decider(ledger, PolicyBook(ledger.fleet, ledger.live))
    request, both = a_pod(a_want(memory_mib=800)), np.array([0, 1])
    assert decider.sentences(request, both[1:]) == ["no card has 800 MiB free, the roomiest has 100 MiB"]
    ledger.reserve(a_ref("uid"), request, an_allocation("a", a_share("GPU-a", 700)), expires_at=1)
    assert decider.sentences(request, both) == said_anew(decider, request)
    ledger.release("uid")
    assert decider.sentences(request, both[1:]) == said_anew(decider, request)


def test_no_more_is_kept_than_there_is_room_for():
    fleet = Ledger().fleet
    for number in range(4):
        fleet.put(a_node(f"node-{number}"))
    sentences, rows = Sentences(fleet, most=4), np.arange(4)

    def explain(asked):
        return [Refusal(Reason.NODE_CORDONED, where=fleet.names[row]) for row in asked]

    for memory in (1, 2, 3):
        assert len(sentences.of(a_pod(a_want(memory_mib=memory)), rows, explain)) == 4
    assert sentences._kept == 4
