"""Colours: on a terminal, unless somebody does not want them."""

import os
import pty
import sys

import pytest

PROGRAM = """
from tessera.cli.table import Cell, Table, TablePrinter, stdout_paper
paper = stdout_paper()
print(paper.width)
for line in TablePrinter(paper, titles=False).lines(Table(("A",), [(Cell("well", "good"),)])):
    print(line)
"""


def on_a_terminal(**environment: str) -> str:
    """What a program prints whose stdout is a terminal."""
    child, terminal = pty.fork()
    if child == 0:
        kept = {key: it for key, it in os.environ.items() if key not in ("NO_COLOR", "COLUMNS")}
        os.execve(sys.executable, [sys.executable, "-c", PROGRAM], kept | {"TERM": "xterm"} | environment)
    printed = b""
    while True:
        try:
            part = os.read(terminal, 1024)
        except OSError:  # how a terminal ends
            break
        if not part:
            break
        printed += part
    os.close(terminal)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0, printed
    return printed.decode()


def test_a_terminal_gets_colours_and_its_width_is_known():
    width, line = on_a_terminal(COLUMNS="77").splitlines()

    assert width == "77"
    assert line == "\x1b[32mwell\x1b[0m"


@pytest.mark.parametrize("environment", [{"NO_COLOR": "1"}, {"TERM": "dumb"}])
def test_a_terminal_without_colours_gets_none(environment: dict[str, str]):
    assert on_a_terminal(**environment).splitlines()[1] == "well"
