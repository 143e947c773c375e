"""How the outcome of a simulation looks: a table, a curve, or JSON."""

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec
from rich.console import Console
from rich.table import Table
from rich.text import Text

from tessera.simulation.campaign import Campaign
from tessera.simulation.replay import Outcome
from tessera.simulation.scenario import CARD_MILLI, Scenario

FIGURES = ("allocated_percent_at_100", "allocated_percent_at_130", "rejected_percent", "decisions_per_second")
COLOURS = ("cyan", "magenta", "green", "yellow", "blue", "red", "white", "bright_black")
PLOT_ROWS, PLOT_FROM = 12, 60
DOTS = ((0x01, 0x08), (0x02, 0x10), (0x04, 0x20), (0x40, 0x80))


def report_of(outcomes: Mapping[str, Sequence[Outcome]]) -> dict[str, dict[str, Any]]:
    """For each policy the means over its seeds, and every seed's own figures."""
    return {
        policy: {
            **{figure: mean_of(found, figure) for figure in FIGURES},
            "per_seed": [_without_curve(outcome) for outcome in found],
        }
        for policy, found in outcomes.items()
    }


def mean_of(outcomes: Sequence[Outcome], figure: str) -> float:
    return round(sum(getattr(outcome, figure) for outcome in outcomes) / len(outcomes), 4)


def _without_curve(outcome: Outcome) -> dict[str, Any]:
    data = msgspec.to_builtins(outcome)
    del data["curve"]
    return data


def print_report(
    console: Console, scenario: Scenario, campaign: Campaign, outcomes: Mapping[str, Sequence[Outcome]]
) -> None:
    cards, seeds = scenario.capacity_milli // CARD_MILLI, len(campaign.seeds)
    console.print(
        f"[bold]{scenario.title}[/bold]: {len(scenario.nodes)} nodes, {cards} cards, {seeds} orders of arrival"
    )
    ranked = sorted(outcomes, key=lambda policy: _merit(outcomes[policy], campaign), reverse=True)
    console.print(_table(ranked, campaign, outcomes))
    if campaign.churn_percent is None:
        _print_plot(console, ranked, outcomes)


def _merit(outcomes: Sequence[Outcome], campaign: Campaign) -> float:
    if campaign.churn_percent is not None:
        return -mean_of(outcomes, "rejected_percent")
    return mean_of(outcomes, "allocated_percent_at_100")


def _table(ranked: Sequence[str], campaign: Campaign, outcomes: Mapping[str, Sequence[Outcome]]) -> Table:
    table = Table(box=None, pad_edge=False, header_style="dim")
    table.add_column("policy")
    held = campaign.churn_percent
    headings = ("at 100 % demand", "at 130 %") if held is None else ()
    for heading in (*headings, "rejected" if held is None else f"rejected, load held at {held:g} %", "decisions/s"):
        table.add_column(heading, justify="right")
    for position, policy in enumerate(ranked):
        found = outcomes[policy]
        allocated = [f"{mean_of(found, figure):.2f} %" for figure in FIGURES[:2]] if held is None else []
        rejected = f"{mean_of(found, 'rejected_percent'):.2f} %"
        speed = f"{mean_of(found, 'decisions_per_second'):,.0f}"
        table.add_row(Text(policy, COLOURS[position % len(COLOURS)]), *allocated, rejected, speed)
    return table


def _print_plot(console: Console, ranked: Sequence[str], outcomes: Mapping[str, Sequence[Outcome]]) -> None:
    """Allocated against arrived demand, from 60 % up, in braille dots; the first seed of each policy."""
    columns = 65
    canvas: dict[tuple[int, int], tuple[int, str]] = {}
    for position, policy in reversed(list(enumerate(ranked))):
        for x, percent in _points(outcomes[policy][0].curve, columns):
            y = round((100 - percent) / (100 - PLOT_FROM) * (PLOT_ROWS * 4 - 1))
            if 0 <= y < PLOT_ROWS * 4:
                cell = y // 4, x // 2
                dots = canvas.get(cell, (0, ""))[0] | DOTS[y % 4][x % 2]
                canvas[cell] = dots, COLOURS[position % len(COLOURS)]
    console.print("\nallocated, % of all cards", style="dim")
    for row in range(PLOT_ROWS):
        label = 100 - round(row * (100 - PLOT_FROM) / PLOT_ROWS)
        line = Text(f"{label:>4} " if row % 3 == 0 else "     ", "dim")
        for column in range(columns):
            dots, colour = canvas.get((row, column), (0, ""))
            line.append(chr(0x2800 + dots) if dots else " ", colour)
        console.print(line)
    console.print(Text(f"     {PLOT_FROM}{'arrived demand, % of all cards':^{columns - 6}}130", "dim"))


def _points(curve: Sequence[float], columns: int) -> list[tuple[int, float]]:
    """Two dots per column, from 60 to 130 percent of arrived demand."""
    width = columns * 2
    points: list[tuple[int, float]] = []
    for x in range(width):
        arrived = PLOT_FROM + x * (130 - PLOT_FROM) / (width - 1)
        low = int(arrived)
        if low + 1 < len(curve):
            points.append((x, curve[low] + (curve[low + 1] - curve[low]) * (arrived - low)))
        elif low < len(curve):
            points.append((x, curve[low]))
    return points
