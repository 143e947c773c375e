import pytest

from tessera.cli.table import Cell, Paper, Table, TablePrinter

WORDS = "0/4 nodes are available: 4 no card has 90000 MiB free, the roomiest has 81920 MiB"
TABLE = Table(("NAME", "PHASE", "BECAUSE"), [("web", Cell("Running", "good"), "-"), ("too-much", "Pending", WORDS)])


def lines(table: Table, *, titles: bool = True, width: int | None = None, colours: bool = False) -> list[str]:
    return list(TablePrinter(Paper(width, colours), titles=titles).lines(table))


def test_in_a_pipe_nothing_is_cut_and_no_line_ends_in_spaces():
    assert lines(TABLE) == [
        "NAME      PHASE    BECAUSE",
        "web       Running  -",
        f"too-much  Pending  {WORDS}",
    ]


def test_on_a_terminal_the_last_column_is_wrapped_under_itself():
    assert lines(TABLE, width=60)[2:] == [
        "too-much  Pending  0/4 nodes are available: 4 no card has",
        "                   90000 MiB free, the roomiest has 81920",
        "                   MiB",
    ]


def test_where_the_other_columns_leave_no_room_the_last_has_lines_of_its_own():
    assert lines(TABLE, width=42) == [
        "NAME      PHASE    BECAUSE",
        "web       Running  -",
        "too-much  Pending",
        "    0/4 nodes are available: 4 no card has",
        "    90000 MiB free, the roomiest has 81920",
        "    MiB",
    ]


@pytest.mark.parametrize("width", [1, 20, 27])
def test_where_there_is_no_room_at_all_the_terminal_wraps(width: int):
    assert lines(TABLE, width=width) == lines(TABLE)


@pytest.mark.parametrize("width", [28, 42, 45, 60, 80, 200])
def test_no_line_is_wider_than_a_terminal_with_room(width: int):
    assert max(map(len, lines(TABLE, width=width))) <= width


def test_tones_are_colours_where_colours_are_wanted_and_nowhere_else():
    assert "\x1b[32mRunning\x1b[0m" in lines(TABLE, width=200, colours=True)[1]
    assert not any("\x1b" in line for line in lines(TABLE, width=200))


def test_later_rows_stand_under_the_first_ones_without_titles():
    printer = TablePrinter(Paper())
    first = list(printer.lines(Table(("NAME", "PHASE"), [("a-long-name", "Pending")])))
    later = list(printer.lines(Table(("NAME", "PHASE"), [("b", "Running")])))

    assert first[0] == "NAME         PHASE"
    assert later == ["b            Running"]


def test_titles_can_be_left_out():
    assert lines(TABLE, titles=False)[0].startswith("web")


def test_a_text_of_others_does_not_steer_the_terminal():
    assert lines(Table(("X",), [("\x1b[2Jgone\nnext",)]), titles=False) == ["\\x1b[2Jgone\\nnext"]
