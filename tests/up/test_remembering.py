"""Files that an earlier start named, and that a later one no longer finds."""

import pytest

from tessera.apps.state_directory import EngineSettings
from tessera.apps.up_settings import Wanted, choose_settings
from tessera.errors import InvalidInput


def test_a_file_of_cards_that_is_gone_is_told_with_a_way_out(tmp_path):
    before = EngineSettings(cards_file=str(tmp_path / "cards.toml"))
    with pytest.raises(InvalidInput, match=r"it was named at an earlier start: .* name other cards with --cards"):
        choose_settings(Wanted(), before)
    assert choose_settings(Wanted(cards="1xT4"), before).cards_file == ""


def test_profiles_that_are_gone_are_told_with_a_way_out(tmp_path):
    before = EngineSettings(cards="1xT4", scheduler_config=str(tmp_path / "profiles.yaml"))
    with pytest.raises(InvalidInput, match=r'it was named at an earlier start: .* drop it with --scheduler-config ""'):
        choose_settings(Wanted(), before)
    assert choose_settings(Wanted(scheduler_config=""), before).scheduler_config == ""
