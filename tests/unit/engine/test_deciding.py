"""Filter, score, choose: one decision over all nodes."""

from pathlib import Path

import pytest

from tessera.engine import policies
from tessera.engine.deciding import Decider
from tessera.engine.policies import CARD_POLICIES, DEFAULT, NODE_POLICIES, PolicyBook, check_choice
from tessera.engine.policy import CardPolicy, NodePolicy
from tessera.errors import InvalidPolicy
from tessera.model.requests import PolicyChoice
from tests.builders import a_card, a_node, a_pod, a_ref, a_want
from tests.unit.engine.world import World

DETERMINISTIC = [name for name in NODE_POLICIES if name != "random"]


class TestChoosing:
    @pytest.mark.parametrize("policy", DETERMINISTIC)
    def test_equal_nodes_are_taken_by_name_and_not_by_arrival(self, policy):
        choice = PolicyChoice(node=policy, cards=(policy,))
        world = World(*(a_node(name, a_card(f"card-{name}")) for name in ("n3", "n1", "n2")))
        assert world.node(a_pod(a_want(memory_percent=50), policy=choice)) == "n1"
        assert world.node(a_pod(cpu_milli=1, policy=choice)) == "n1"

    @pytest.mark.parametrize("policy", DETERMINISTIC)
    def test_the_same_question_has_the_same_answer(self, policy):
        world = World(*(a_node(f"n{number}", a_card("A"), a_card("B")) for number in range(4)))
        world.hold("n2", "A", 5000)
        pod = a_pod(a_want(memory_mib=4000), policy=PolicyChoice(node=policy, cards=(policy,)))
        answers = {world.decider.choose(pod) for _ in range(3)}
        answers.add(Decider(world.ledger, world.book).choose(pod))
        assert len(answers) == 1

    def test_the_random_policy_is_repeatable(self):
        def answers(seed: int) -> list[str | None]:
            world = World(*(a_node(f"n{number}", a_card("A")) for number in range(10)))
            book = PolicyBook(world.ledger.fleet, world.ledger.live, default=PolicyChoice(node="random"), seed=seed)
            decider = Decider(world.ledger, book)
            chosen = [decider.choose(a_pod(a_want())) for _ in range(20)]
            return [allocation.node if allocation else None for allocation in chosen]

        assert answers(1) == answers(1)
        assert answers(1) != answers(2)
        assert len(set(answers(1))) > 3

    def test_nobody_is_chosen_where_nobody_fits(self):
        world = World(a_node("n", a_card("A")))
        assert world.decider.choose(a_pod(a_want(2))) is None
        assert world.decider.allocate(a_pod(a_want(2)), 0) is None

    def test_what_is_chosen_can_be_reserved(self):
        world = World(a_node("n", a_card("A", slots=1)))
        assert world.place(a_pod(a_want())) == "n"
        assert world.place(a_pod(a_want())) is None

    def test_a_removed_node_is_no_candidate_and_its_row_serves_another(self):
        world = World(a_node("a", a_card("A")), a_node("b", a_card("B")))
        pod = a_pod(a_want())
        assert world.fitting(pod) == ["a", "b"]
        world.ledger.drop_node("a")
        assert world.fitting(pod) == ["b"]
        world.ledger.put_node(a_node("c", a_card("C")))
        assert world.fitting(pod) == ["b", "c"]


class TestRemembering:
    """Verdicts are kept per request, and only rows that changed are looked at again."""

    def test_a_card_that_is_taken_or_freed_changes_the_answer(self):
        world = World(a_node("n", a_card("A", slots=1)))
        pod = a_pod(a_want())
        assert world.fitting(pod) == ["n"]
        uid = world.hold("n", "A")
        assert world.fitting(pod) == []
        world.ledger.release(uid)
        assert world.fitting(pod) == ["n"]

    def test_a_wider_node_changes_nothing_for_the_others(self):
        world = World(a_node("n", a_card("A")))
        world.hold("n", "A", 16_384)
        pod = a_pod(a_want(memory_mib=1))
        assert world.fitting(pod) == []
        world.ledger.put_node(a_node("wide", *(a_card(f"W{number}") for number in range(9))))
        assert world.fitting(pod) == ["wide"]

    def test_many_more_nodes_are_looked_at_too(self):
        world = World(a_node("n00", a_card("A")))
        pod = a_pod(a_want())
        assert world.fitting(pod) == ["n00"]
        for number in range(1, 40):
            world.ledger.put_node(a_node(f"n{number:02}", a_card(f"B{number}")))
        assert world.fitting(pod) == [f"n{number:02}" for number in range(40)]

    def test_a_small_memory_forgets_the_oldest_and_answers_alike(self):
        world = World(*(a_node(f"n{number}", a_card("A")) for number in range(3)))
        tight = Decider(world.ledger, world.book, cache_bytes=100)
        for _ in range(2):
            for memory in range(1000, 16_000, 1000):
                pod = a_pod(a_want(memory_mib=memory))
                assert tight.choose(pod) == world.decider.choose(pod)

    @pytest.mark.parametrize("policy", ["best-fit", "dot-product"])
    def test_scores_relative_to_the_largest_node_follow_a_larger_one(self, policy):
        world = World(a_node("a", a_card("A"), cpu_milli=10_000), a_node("b", a_card("B"), cpu_milli=20_000))
        pod = a_pod(a_want(memory_percent=50), cpu_milli=5000, policy=PolicyChoice(node=policy))
        before = world.scores(pod)
        world.ledger.put_node(a_node("c", a_card("C"), cpu_milli=2_000_000))
        after = world.scores(pod)
        _, scores = Decider(world.ledger, world.book).candidates(pod)
        assert list(after.values()) == scores.tolist()
        assert after["a"] != before["a"]

    def test_a_card_policy_that_learned_is_asked_again(self):
        """Node figures depend on the cards chosen, and those on what the card policy has learned."""
        world = World(a_node("n", a_card("A", memory_mib=1000), a_card("B", memory_mib=2000)))
        world.decider.observe(a_pod(a_want(memory_percent=100, cores_percent=100)))
        world.hold("n", "B", memory_mib=200)
        pod = a_pod(a_want(memory_percent=16), policy=PolicyChoice(node="binpack", cards=("defrag",)))
        before = world.scores(pod)
        for percent in (81, 16) * 8:
            world.decider.observe(a_pod(a_want(memory_percent=percent), policy=DEFAULT))
        after = world.scores(pod)
        assert after != before
        assert list(after.values()) == Decider(world.ledger, world.book).candidates(pod).scores.tolist()


class TestPolicyNames:
    def test_an_unknown_node_policy_is_refused_with_the_known_ones(self):
        with pytest.raises(InvalidPolicy) as error:
            World(a_node("n")).node(a_pod(policy=PolicyChoice(node="bin-pack")))
        assert str(error.value) == (
            'the node policy is "bin-pack", expected binpack, spread, topology-aware, defrag, fgd, best-fit, '
            "dot-product or random"
        )

    def test_an_unknown_card_policy_is_refused_wherever_it_stands(self):
        with pytest.raises(InvalidPolicy) as error:
            World(a_node("n")).node(a_pod(policy=PolicyChoice(cards=("binpack", "Spread"))))
        assert str(error.value) == (
            'the card policy is "Spread", expected binpack, spread, topology-aware, mutex, numa, defrag, fgd, '
            "best-fit, dot-product or random"
        )

    def test_mutex_and_numa_are_for_cards_alone(self):
        for name in ("mutex", "numa"):
            check_choice(PolicyChoice(cards=(name,)))
            with pytest.raises(InvalidPolicy):
                check_choice(PolicyChoice(node=name))

    def test_a_default_that_does_not_exist_is_refused_at_once(self):
        with pytest.raises(InvalidPolicy):
            World(default=PolicyChoice(node="best"))

    def test_the_default_is_defrag_for_both(self):
        assert PolicyChoice(node="defrag", cards=("defrag",)) == DEFAULT

    @pytest.mark.parametrize("default", [PolicyChoice(), PolicyChoice(node="spread"), PolicyChoice(cards=("numa",))])
    def test_what_a_default_leaves_open_is_defrag(self, default):
        world = World(a_node("n", a_card("A")), default=default)
        assert world.node(a_pod(a_want())) == "n"
        named = PolicyChoice(node=default.node or "defrag", cards=default.cards or ("defrag",))
        assert type(world.book.nodes(PolicyChoice())) is type(world.book.nodes(named))
        assert type(world.book.cards(PolicyChoice())) is type(world.book.cards(named))

    def test_policies_that_learn_are_shared_by_all_who_name_them(self):
        book = World(a_node("n")).book
        assert book.nodes(PolicyChoice(node="defrag")) is book.cards(PolicyChoice(cards=("defrag",)))


@pytest.mark.parametrize("name", CARD_POLICIES)
@pytest.mark.parametrize("seen", [False, True], ids=["nothing seen", "pods seen"])
@pytest.mark.parametrize(
    "nodes",
    [
        (),
        (a_node("n"),),
        (a_node("n", a_card("A")),),
        (a_node("n", a_card("A", vendor="DCU"), a_card("B")), a_node("m")),
    ],
    ids=["no node", "no card", "one card", "two vendors"],
)
def test_every_policy_answers_in_every_corner(name, seen, nodes):
    choice = PolicyChoice(node=name if name in NODE_POLICIES else "", cards=(name,))
    world = World(*nodes, default=DEFAULT)
    pods = [a_pod(policy=choice), a_pod(a_want(), policy=choice), a_pod(a_want(3, vendor="DCU"), policy=choice)]
    for pod in pods:
        if seen:
            world.decider.observe(pod)
        names = {refusal.where for refusal in world.decider.refusals(pod)} | set(world.fitting(pod))
        assert names == {node.name for node in nodes}
        assert (world.node(pod) is None) == (not world.fitting(pod))


class Fewest(NodePolicy, CardPolicy):
    """A policy as a newcomer would write it: the node and the card with the fewest slots left."""

    def keys(self, demand, cards, eligible):  # noqa: ARG002
        return -cards.free_slots.astype(float)

    def score(self, trial):
        return -trial.after.free_slots.sum(axis=1, dtype="float32")[:, None]


def test_a_new_policy_is_one_class_and_one_line(monkeypatch):
    monkeypatch.setitem(policies.OF_BOTH, "fewest", lambda _: Fewest())
    world = World(a_node("a", a_card("A"), a_card("B")), a_node("b", a_card("C"), a_card("D", slots=3)))
    pod = a_pod(a_want(), policy=PolicyChoice(node="fewest", cards=("fewest",)))
    assert world.node(pod) == "b"
    assert world.cards(pod) == [["D"]]
    world.ledger.reserve(a_ref(), pod, world.decider.choose(pod), expires_at=1.0)  # pyright: ignore[reportArgumentType]
    assert len(world.decider.refusals(a_pod(a_want(9), policy=pod.policy))) == 2


def test_the_document_lists_every_policy():
    text = (Path(__file__).parents[3] / "docs/policies.md").read_text(encoding="utf-8")
    table = "".join(line for line in text.splitlines() if line.startswith("| `"))
    assert [name for name in CARD_POLICIES if f"`{name}`" not in table] == []
