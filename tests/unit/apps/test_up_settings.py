"""Which nodes and cards an engine has."""

import msgspec
import pytest

from tessera.apps.state_directory import EngineSettings, default_path
from tessera.apps.up_settings import Wanted, choose_settings
from tessera.errors import InvalidInput

BEFORE = EngineSettings(nodes=2, cards="1xT4", port=4711)


def test_what_is_not_said_is_as_before():
    assert choose_settings(Wanted(), BEFORE) == BEFORE


def test_what_is_said_counts_and_the_rest_is_as_before():
    chosen = choose_settings(Wanted(nodes=3), BEFORE)
    assert (chosen.nodes, chosen.cards, chosen.port) == (3, "1xT4", 4711)


def test_how_strictly_containers_are_held_is_as_before_until_something_else_is_said():
    loose = choose_settings(Wanted(cores_policy="default", spill_percent=50), BEFORE)
    assert (loose.cores_policy, loose.spill_percent) == ("default", 50)
    assert choose_settings(Wanted(spill_percent=0), loose) == msgspec.structs.replace(loose, spill_percent=0)


def test_a_file_of_cards_takes_the_place_of_a_description(tmp_path):
    path = tmp_path / "cards.toml"
    path.write_text('[[cards]]\nmodel = "T4"\n')
    chosen = choose_settings(Wanted(cards_file=path), BEFORE)
    assert (chosen.cards, chosen.cards_file) == ("", str(path))


def test_a_first_engine_has_the_cards_that_are_named():
    assert choose_settings(Wanted(cards="8xA100-SXM4-80GB"), None).cards == "8xA100-SXM4-80GB"


@pytest.mark.parametrize(("has_cards", "nodes", "cards"), [(False, 4, "2xA100-SXM4-80GB"), (True, 1, "")])
def test_a_first_engine_has_the_cards_of_the_machine_else_simulated_ones(monkeypatch, has_cards, nodes, cards):
    monkeypatch.setattr("tessera.apps.up_settings.finds_real_cards", lambda: has_cards)
    chosen = choose_settings(Wanted(), None)
    assert (chosen.nodes, chosen.cards) == (nodes, cards)


def test_the_cards_of_a_machine_are_on_one_node():
    with pytest.raises(InvalidInput, match="--nodes is 2 and the cards are this machine's own, expected one node"):
        choose_settings(Wanted(nodes=2), EngineSettings(nodes=1))


def test_a_scheduler_configuration_that_cannot_be_used_is_refused_before_it_is_remembered(tmp_path):
    with pytest.raises(InvalidInput, match="expected a KubeSchedulerConfiguration"):
        choose_settings(Wanted(scheduler_config=tmp_path / "none.yaml"), BEFORE)


def test_a_description_that_cannot_be_read_is_refused_at_once():
    with pytest.raises(InvalidInput, match='cards is "many", expected a number and a model'):
        choose_settings(Wanted(cards="many"), BEFORE)


def test_cards_that_nobody_makes_are_refused_before_they_are_remembered(tmp_path):
    path = tmp_path / "cards.toml"
    path.write_text('[[cards]]\nmodel = "FOO"\n')
    for wanted in (Wanted(cards="3xFOO"), Wanted(cards_file=path)):
        with pytest.raises(InvalidInput, match='"FOO"'):
            choose_settings(wanted, BEFORE)


def test_an_empty_home_is_no_place_to_keep_anything_in():
    assert default_path({"HOME": ""}) == default_path({})
