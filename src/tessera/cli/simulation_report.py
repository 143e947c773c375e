"""How the outcome of a simulation looks: a table, a curve, or JSON."""

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec
from rich.console import Console
from rich.table import Table
from rich.text import Text

from tessera.cli.simulation_plot import carries, colour_of, letter_of, plot
from tessera.simulation.campaign import Campaign
from tessera.simulation.replay import Outcome
from tessera.simulation.scenario import CARD_MILLI, Scenario, counted

FIGURES = ("allocated_percent_at_100", "allocated_percent_at_130", "rejected_percent", "decisions_per_second")
NOTHING = "–"

Outcomes = Mapping[str, Sequence[Outcome]]


def report_of(outcomes: Outcomes) -> dict[str, dict[str, Any]]:
    """For each policy the means over its seeds, and every seed's own figures."""
    return {
        policy: {
            **{figure: mean_of(found, figure) for figure in FIGURES},
            "per_seed": [_without_curve(outcome) for outcome in found],
        }
        for policy, found in outcomes.items()
    }


def mean_of(outcomes: Sequence[Outcome], figure: str) -> float | None:
    """None where the demand of the figure never arrived."""
    values: list[float | None] = [getattr(outcome, figure) for outcome in outcomes]
    known = [value for value in values if value is not None]
    return round(sum(known) / len(known), 4) if len(known) == len(values) else None


def _without_curve(outcome: Outcome) -> dict[str, Any]:
    data = msgspec.to_builtins(outcome)
    del data["curve"]
    return data


def print_report(console: Console, scenario: Scenario, campaign: Campaign, outcomes: Outcomes) -> None:
    ranked = sorted(outcomes, key=lambda policy: _merit(outcomes[policy], campaign), reverse=True)
    curves = [outcomes[policy][0].curve for policy in ranked]
    lines = plot(console, curves) if campaign.churn_percent is None else []
    console.print(_title(scenario, len(campaign.seeds)), soft_wrap=True)
    marks = [f"{letter_of(position)} " if lines and len(ranked) > 1 else "" for position in range(len(ranked))]
    console.print(_table(ranked, marks, campaign, outcomes, NOTHING if carries(console, NOTHING) else "-"))
    for line in lines:
        console.print(line)


def _title(scenario: Scenario, seeds: int) -> Text:
    nodes, cards = counted(len(scenario.nodes), "node"), counted(scenario.capacity_milli // CARD_MILLI, "card")
    return Text(scenario.title, "bold").append(f": {nodes}, {cards}, {counted(seeds, 'order')} of arrival", "not bold")


def _merit(outcomes: Sequence[Outcome], campaign: Campaign) -> float:
    allocated = mean_of(outcomes, "allocated_percent_at_100")
    if campaign.churn_percent is not None or allocated is None:
        return -(mean_of(outcomes, "rejected_percent") or 0.0)
    return allocated


def _table(ranked: Sequence[str], marks: Sequence[str], campaign: Campaign, outcomes: Outcomes, nothing: str) -> Table:
    held = campaign.churn_percent
    headings = ("at 100 % demand", "at 130 %", "rejected") if held is None else (f"rejected, load held at {held:g} %",)
    figures = FIGURES[:3] if held is None else FIGURES[2:3]
    table = Table(box=None, pad_edge=False, header_style="dim")
    table.add_column("policy", overflow="fold")
    for heading in (*headings, "decisions/s"):
        table.add_column(heading, justify="right", overflow="fold")
    for position, policy in enumerate(ranked):
        means = [mean_of(outcomes[policy], figure) for figure in figures]
        percents = [nothing if mean is None else f"{mean:.2f} %" for mean in means]
        speed = f"{mean_of(outcomes[policy], 'decisions_per_second') or 0:,.0f}"
        table.add_row(Text(marks[position] + policy, colour_of(position)), *percents, speed)
    return table
