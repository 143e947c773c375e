"""The judge of a cluster sees each kind of broken promise, and none where there is none."""

from typing import Any

from testbed.checking import Amount, Card, judge
from tests.unit.scheduler.cluster import a_pod, node_document

NODE = node_document("a", "2xA100-SXM4-80GB")
REGISTER = NODE["metadata"]["annotations"]["hami.io/node-nvidia-register"]
ONE, OTHER = (card.partition(",")[0] for card in REGISTER.split(":")[:2])
ALLOCATED = "hami.io/vgpu-devices-allocated"


def holding(name: str, *containers: str, node: str = "a", **extra: Any) -> dict[str, Any]:
    """A pod on a node, with the cards of each container as `UUID,MiB`."""
    pod = a_pod(name, nodeName=node)
    slots = ["".join(f"{uuid},NVIDIA,{mib},10:" for uuid, mib in [shares.split(",")]) for shares in containers]
    pod["metadata"]["annotations"] = {ALLOCATED: "".join(f"{slot};" for slot in slots)}
    return {**pod, **extra}


def test_what_can_be_kept_is_no_problem():
    verdict = judge([NODE], [holding("one", f"{ONE},50000"), holding("two", f"{ONE},31920"), a_pod("waiting")])
    assert verdict.problems == ()
    assert verdict.taken == {Card("a", ONE): Amount(2, 81_920, 20)}
    assert verdict.free == {Card("a", ONE): Amount(8, 0, 80), Card("a", OTHER): Amount(10, 81_920, 100)}


def test_a_card_promised_twice_is_a_problem():
    verdict = judge([NODE], [holding("one", f"{ONE},50000"), holding("two", f"{ONE},31921")])
    assert verdict.problems == (f"card {ONE} on a has 81920 memory_mib, 81921 are promised",)


def test_a_pod_that_is_over_holds_nothing():
    over = holding("one", f"{ONE},50000", status={"phase": "Succeeded"})
    assert judge([NODE], [over]).taken == {}


def test_a_pod_on_a_node_without_cards_of_its_own_is_a_problem():
    assert judge([NODE], [a_pod("bare", nodeName="a")]).problems == (
        "pod default/bare on a asks for cards and has none",
    )


def test_a_card_of_another_node_is_a_problem():
    assert judge([NODE], [holding("lost", f"{ONE},1", node="b")]).problems == (
        f"pod default/lost holds the card {ONE}, which is not on b",
    )


def test_a_pod_bound_to_another_node_than_its_cards_is_a_problem():
    pod = holding("split", f"{ONE},1")
    pod["metadata"]["annotations"]["hami.io/vgpu-node"] = "b"
    assert judge([NODE], [pod]).problems == ("pod default/split is on a, its cards are on b",)


def test_an_init_container_counts_before_the_others_and_not_after():
    pod = holding("both", f"{ONE},60000", f"{ONE},20000")
    pod["spec"]["initContainers"] = [{**pod["spec"]["containers"][0], "name": "init"}]
    assert judge([NODE], [pod]).taken == {Card("a", ONE): Amount(1, 60_000, 10)}
    pod["status"] = {"conditions": [{"type": "Initialized", "status": "True"}]}
    assert judge([NODE], [pod]).taken == {Card("a", ONE): Amount(1, 20_000, 10)}
