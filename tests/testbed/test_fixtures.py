"""Where something is missing a test skips and says so; on CI it fails."""

import pytest

from testbed.fixtures import require


def test_what_is_there_lets_the_test_run(monkeypatch):
    monkeypatch.setenv("CI", "true")
    require(True, "never said")


def test_what_is_missing_skips_the_test_with_a_sentence(monkeypatch):
    monkeypatch.delenv("CI", raising=False)
    with pytest.raises(pytest.skip.Exception, match="no javac here"):
        require(False, "no javac here")


def test_on_ci_nothing_may_be_missing(monkeypatch):
    monkeypatch.setenv("CI", "true")
    with pytest.raises(pytest.fail.Exception, match="no javac here; CI must have it"):
        require(False, "no javac here")
