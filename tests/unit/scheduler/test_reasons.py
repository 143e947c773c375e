"""Of all that nodes say against a pod one reason is told: that of the node which came nearest."""

import pytest

from tessera.model.refusals import Reason, Refusal, render
from tessera.scheduler.reasons import reason_of, summarize

MEMORY = render(Refusal(Reason.CARD_MEMORY, need=4000, have=0))
NO_CARDS = render(Refusal(Reason.NO_CARDS, detail="NVIDIA"))


@pytest.mark.parametrize("reason", list(Reason))
@pytest.mark.parametrize("refusal", [(1, 0, 1), (2, 1, 1), (24_000, 16_384, 4), (0, -5, 1)])
def test_a_reason_is_known_again_by_its_words(reason: Reason, refusal: tuple[int, int, int]):
    need, have, cards = refusal
    sentence = render(Refusal(reason, need=need, have=have, detail="dedicated=gpu:NoSchedule", cards=cards))
    assert reason_of(sentence) is reason


def test_a_quota_is_known_with_its_namespace_and_other_words_are_not():
    over = Refusal(Reason.QUOTA, need=2000, have=1000, where="default", detail="NVIDIA memory_mib")
    assert reason_of(render(over)) is Reason.QUOTA
    assert reason_of("the node fell over") is None


def test_the_nearest_miss_is_told_and_not_what_most_nodes_say():
    summary = summarize([*[NO_CARDS] * 90, *[MEMORY] * 2])
    assert (summary.reason, summary.nodes, summary.asked) == (Reason.CARD_MEMORY, 2, 92)
    assert str(summary) == ("no node can take the pod; 2 of 92: no card has 4000 MiB free, the roomiest has 0 MiB")


def test_the_words_do_not_depend_on_the_order_of_nodes():
    one, other = (render(Refusal(Reason.CARD_MEMORY, need=4000, have=have)) for have in (1, 2))
    assert summarize([one, other, NO_CARDS]) == summarize([NO_CARDS, other, one])


def test_a_pod_that_no_node_was_asked_about_has_no_reason():
    assert summarize([]).reason is None
