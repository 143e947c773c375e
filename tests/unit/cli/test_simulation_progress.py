import pytest

from tessera.cli.simulation_progress import Lines
from tessera.simulation.campaign import Progress


def test_a_long_run_without_a_terminal_says_something_now_and_then(capsys: pytest.CaptureFixture[str]) -> None:
    seconds = iter([0, 5, 9, 11, 12, 30, 32])
    lines = Lines("a [trace]: 2 replays", clock=lambda: next(seconds))
    for _ in range(6):
        lines(Progress(0, 2, 0.25))

    assert capsys.readouterr().err.splitlines() == [
        "a [trace]: 2 replays: 25% after 11 s",
        "a [trace]: 2 replays: 25% after 32 s",
    ]
