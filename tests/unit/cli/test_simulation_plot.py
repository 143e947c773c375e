import io

from rich.console import Console

from tessera.cli.simulation_plot import plot

RISING = [float(percent) for percent in range(131)]
FLAT = [min(float(percent), 80.0) for percent in range(131)]


def console_of(width: int) -> Console:
    return Console(file=io.StringIO(), width=width)


def test_each_of_several_curves_ends_in_its_letter() -> None:
    ends = [line.plain[-1] for line in plot(console_of(80), [[min(point, 100) for point in RISING], FLAT])]

    assert "".join(ends).strip()[1:-1].split() == ["a", "b"]


def test_curves_that_end_together_share_a_row_in_the_order_of_their_rank() -> None:
    assert any(line.plain.endswith(" abc") for line in plot(console_of(80), [FLAT, FLAT, FLAT]))


def test_a_plot_is_as_narrow_as_its_console_and_left_out_below_fifty_columns() -> None:
    for width in (50, 64, 80):
        lines = plot(console_of(width), [FLAT] * 8)
        assert lines
        assert max(len(line.plain) for line in lines) <= width
    assert plot(console_of(49), [FLAT]) == []


def test_only_what_arrived_is_drawn() -> None:
    assert plot(console_of(80), [FLAT[:96]])[-1].plain.endswith("95")
    assert plot(console_of(80), [FLAT[:61]]) == []
    assert plot(console_of(80), [[0.0] * 131]) == []
