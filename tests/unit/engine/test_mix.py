"""Which shapes of pods arrive, learned from those seen so far."""

import pytest
from msgspec.structs import replace

from tessera.engine.mix import Mix, Shape, most_typical, shape_of
from tessera.model.claims import WHOLE_CARD
from tessera.model.requests import CardSelector
from tests.builders import GIB, a_pod, a_sidecar, a_want, an_app, an_init
from tests.unit.engine.claims import a_claim_pod


def shape(number: int) -> Shape:
    return Shape(None, number, 0)


class TestShapes:
    def test_a_pod_without_cards_has_a_shape_without_a_device(self):
        assert shape_of(a_pod(cpu_milli=5, memory_bytes=GIB)) == Shape(None, 5, GIB)
        assert shape_of(a_pod(an_app())) == Shape(None, 0, 0)

    def test_the_request_for_most_cards_stands_for_the_pod(self):
        small, large = a_want(1, cores_percent=100), a_want(2, cores_percent=10)
        assert shape_of(a_pod(small, large)).device == large

    def test_among_as_many_cards_cores_decide_and_then_memory(self):
        few, many = a_want(cores_percent=10, memory_percent=90), a_want(cores_percent=20)
        assert shape_of(a_pod(few, many)).device == many
        assert shape_of(a_pod(a_want(memory_percent=10), a_want(memory_percent=90))).device == a_want(memory_percent=90)

    def test_a_sidecar_counts_and_an_init_container_does_not(self):
        assert shape_of(a_pod(an_init(a_want(8)), a_sidecar(a_want(2)), a_want(1))).device == a_want(2)
        assert shape_of(a_pod(an_init(a_want(8)))).device is None

    def test_what_a_pod_claims_as_a_whole_counts_like_what_its_containers_ask_for(self):
        assert shape_of(a_claim_pod(4, a_want(1))).device == replace(WHOLE_CARD, count=4)
        assert shape_of(a_claim_pod(1, a_want(2), shared={})).device == a_want(2)

    def test_who_asks_does_not_matter(self):
        assert shape_of(a_pod(a_want(2))) == shape_of(a_pod(a_want(2), an_app()))


class TestFrequencies:
    def test_nothing_seen_is_an_empty_list(self):
        assert Mix().frequencies() == []

    def test_shares_add_up_to_one_and_the_most_frequent_comes_first(self):
        mix = Mix()
        for number in (1, 2, 2, 2):
            mix.observe(shape(number))
        (first, most), (second, least) = mix.frequencies()
        assert (first, second) == (shape(2), shape(1))
        assert most == pytest.approx(0.75, abs=1e-3)
        assert most + least == pytest.approx(1)
        assert mix.seen == 4

    def test_a_pod_weighs_half_after_the_half_life(self):
        mix = Mix(half_life_pods=10)
        mix.observe(shape(1))
        for _ in range(9):
            mix.observe(shape(2))
        mix.observe(shape(3))
        weights = dict(mix.frequencies())
        assert weights[shape(1)] / weights[shape(3)] == pytest.approx(0.5)

    def test_a_new_mix_replaces_the_old_one(self):
        mix = Mix(half_life_pods=20)
        for _ in range(100):
            mix.observe(shape(1))
        for number in range(100):
            mix.observe(shape(2 + number % 2))
        weights = dict(mix.frequencies())
        assert weights[shape(1)] < 0.05
        assert weights[shape(2)] == pytest.approx(0.5, abs=0.05)
        assert weights[shape(3)] == pytest.approx(0.5, abs=0.05)

    def test_rescaling_changes_no_share_that_matters_and_forgets_the_rest(self):
        rescaled, plain = Mix(half_life_pods=1), Mix(half_life_pods=1)
        for number in (0, 1, 2, 1, 2):
            plain.observe(shape(number))
        rescaled.observe(shape(9))
        for _ in range(60):  # 2 to the 40th is beyond the largest weight
            rescaled.observe(shape(8))
        for _ in range(60):
            rescaled.observe(shape(7))
        for number in (0, 1, 2, 1, 2):
            rescaled.observe(shape(number))
        forgotten = dict(rescaled.frequencies())
        assert shape(9) not in forgotten
        for seen, share in plain.frequencies():
            assert forgotten[seen] == pytest.approx(share, rel=0.1)

    def test_equal_shares_stand_in_the_order_of_first_sight(self):
        mix = Mix(half_life_pods=1e300)
        for number in (3, 1, 2):
            mix.observe(shape(number))
        assert [seen for seen, _ in mix.frequencies()] == [shape(3), shape(1), shape(2)]


class TestTypicalShapes:
    def test_shapes_are_taken_by_the_step_until_they_cover_enough(self):
        many = [(shape(number), 0.05) for number in range(20)]
        assert len(most_typical(many, cover=0.49)) == 10
        assert len(most_typical(many, cover=0.51)) == 20
        assert len(most_typical(many, cover=0.49, step=4)) == 12

    def test_there_is_a_limit(self):
        many = [(shape(number), 1e-4) for number in range(1000)]
        assert len(most_typical(many, at_most=25)) == 25

    def test_few_shapes_are_all_typical(self):
        few = [(shape(1), 0.9), (shape(2), 0.1)]
        assert most_typical(few) == few
        assert most_typical([]) == []


def test_who_is_asked_for_by_name_and_how_urgently_is_not_part_of_the_shape():
    plain = a_pod(a_want(1, memory_mib=1000))
    pinned = a_pod(a_want(1, memory_mib=1000, priority=1, selector=CardSelector(use_uuids=("GPU-7",))))
    typed = a_pod(a_want(1, memory_mib=1000, selector=CardSelector(use_types=("T4",), avoid_uuids=("GPU-7",))))

    assert shape_of(pinned) == shape_of(plain)
    assert shape_of(typed) == shape_of(a_pod(a_want(1, memory_mib=1000, selector=CardSelector(use_types=("T4",)))))


def test_of_two_containers_the_one_with_more_memory_stands_for_the_pod():
    small, large = a_want(1, memory_mib=1000), a_want(1, memory_mib=30_000)

    assert shape_of(a_pod(small, large)).device == large
    assert shape_of(a_pod(large, small)).device == large
