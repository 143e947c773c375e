import io

import pytest
from rich.console import Console

from tessera.cli.simulation_report import mean_of, print_report
from tessera.simulation.campaign import Campaign
from tessera.simulation.made_up import make_up_cluster
from tessera.simulation.replay import Outcome

LONGEST = "topology-aware/topology-aware"


def an_outcome(at_100: float | None, rejected: float = 0.0) -> Outcome:
    return Outcome(
        seed=42,
        allocated_percent_at_100=at_100,
        allocated_percent_at_130=None,
        rejected_percent=rejected,
        decisions_per_second=123456.0,
        pods=5,
        curve=tuple(float(min(percent, 90)) for percent in range(131)),
    )


def printed(width: int, campaign: Campaign, outcomes: dict[str, list[Outcome]]) -> str:
    file = io.StringIO()
    print_report(Console(file=file, width=width), make_up_cluster("2x2"), campaign, outcomes)
    return file.getvalue()


def test_a_mean_exists_only_where_every_seed_has_the_figure() -> None:
    assert mean_of([an_outcome(90), an_outcome(91)], "allocated_percent_at_100") == 90.5
    assert mean_of([an_outcome(90), an_outcome(None)], "allocated_percent_at_100") is None


@pytest.mark.parametrize("churn", [None, 92.5])
def test_no_heading_is_cut_at_80_columns(churn: float | None) -> None:
    campaign = Campaign(policies=("fgd", LONGEST), seeds=(42,), churn_percent=churn)
    text = printed(80, campaign, {"fgd": [an_outcome(90)], LONGEST: [an_outcome(91)]})
    headings = ["rejected, load held at 92.5 %"] if churn else ["at 100 % demand", "at 130 %", "rejected"]

    assert all(heading in text for heading in ["policy", *headings, "decisions/s", LONGEST])
    assert "…" not in text


def test_the_letters_of_the_plot_stand_beside_the_policies_in_the_order_of_their_merit() -> None:
    campaign = Campaign(policies=("fgd", "defrag"), seeds=(42,))
    outcomes = {"fgd": [an_outcome(90)], "defrag": [an_outcome(91)]}

    assert [line.split()[:2] for line in printed(80, campaign, outcomes).splitlines()[2:4]] == [
        ["a", "defrag"],
        ["b", "fgd"],
    ]
    assert "a defrag" not in printed(40, campaign, outcomes)


def test_where_100_percent_never_arrived_the_one_that_rejected_least_comes_first() -> None:
    campaign = Campaign(policies=("fgd", "defrag"), seeds=(42,))
    text = printed(40, campaign, {"fgd": [an_outcome(None, 9)], "defrag": [an_outcome(None, 3)]})

    assert text.index("defrag") < text.index("fgd")
