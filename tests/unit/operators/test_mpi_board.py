"""Boards: what is told of workers there, and what workers tell."""

from pathlib import Path

from tessera.operators.mpi_board import Boards, write_ranks
from tests.unit.operators.mpi_making import a_pod


def test_a_worker_is_told_by_its_phase_and_by_one_line_that_says_why(tmp_path: Path) -> None:
    boards = Boards(tmp_path)
    boards.tell("u-1", [a_pod("fit-worker-0", "Failed", message="no\nroom")])
    assert (tmp_path / "u-1" / "fit-worker-0.state").read_text() == "Failed\nno room\n"
    boards.tell("u-1", [a_pod("fit-worker-0", "Running")])
    assert (tmp_path / "u-1" / "fit-worker-0.state").read_text() == "Running\n\n"


def test_ranks_are_counted_and_missed_ones_are_at_least_one(tmp_path: Path) -> None:
    board = tmp_path / "u-1"
    board.mkdir()
    (board / "a.ranks").write_text('{"ranks": [0, 3], "missed": true}')
    (board / "b.ranks").write_text('{"ranks": [], "missed": true}')
    (board / "c.ranks").write_text('{"ranks": [], "missed": false}')
    (board / "d.ranks").write_text("half of a li")
    ranks = Boards(tmp_path).ranks("u-1", ["a", "b", "c", "d", "e"])
    assert write_ranks(ranks) == '{"a":2,"b":1,"c":0,"d":0,"e":0}'


def test_boards_of_jobs_that_are_gone_are_removed(tmp_path: Path) -> None:
    boards = Boards(tmp_path)
    for uid in ("u-1", "u-2"):
        boards.post(uid, {"token": "t"})
    boards.keep(["u-2"])
    assert [board.name for board in tmp_path.iterdir()] == ["u-2"]


def test_what_is_on_a_board_is_nobody_elses_to_read(tmp_path: Path) -> None:
    boards = Boards(tmp_path)
    boards.post("u-1", {"token": "old"})
    boards.post("u-1", {"token": "new"})
    assert (tmp_path / "u-1" / "token").read_text() == "new"
    assert (tmp_path / "u-1" / "token").stat().st_mode & 0o777 == 0o600
