"""`tessera simulate`: what would a policy have done with this cluster and these pods?"""

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import click
import msgspec
from rich.console import Console

from tessera.cli.simulation_progress import shown_progress
from tessera.cli.simulation_report import print_report, report_of
from tessera.engine.policies import NODE_POLICIES
from tessera.errors import InvalidPolicy, InvalidTrace
from tessera.simulation.campaign import Campaign, run_campaign
from tessera.simulation.choices import parse_choice
from tessera.simulation.dump import read_dump
from tessera.simulation.made_up import make_up_cluster
from tessera.simulation.replay import Outcome
from tessera.simulation.scenario import Scenario, counted
from tessera.simulation.trace import read_trace

FIRST_SEED = 42
HAMI_DEFAULT = "binpack/spread"
POLICIES = (*(name for name in NODE_POLICIES if name != "topology-aware"), HAMI_DEFAULT)
MOST_NOTES = 10


class Percent(click.FloatRange):
    """A range that "not a number" is outside of."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        number: float = super().convert(value, param, ctx)
        if math.isnan(number):
            self.fail(f"{value} is not a number from {self.min:g} to {self.max:g}.", param, ctx)
        return number


@click.command()
@click.option(
    "--nodes", type=click.Path(path_type=Path), help="Node list as CSV: sn, cpu_milli, memory_mib, gpu, model."
)
@click.option(
    "--pods",
    type=click.Path(path_type=Path),
    help="Pod list as CSV: name, cpu_milli, memory_mib, num_gpu, gpu_milli and, if any, gpu_spec.",
)
@click.option(
    "--dump", type=click.Path(path_type=Path), help="Nodes and pods as kubectl get nodes,pods -A -o json gives."
)
@click.option("--cluster", help="A cluster made up on the spot: NODESxCARDS, such as 1000x8.")
@click.option(
    "--policy",
    default="defrag",
    show_default=True,
    help=f"One of {', '.join(NODE_POLICIES)}, or NODE/CARD such as {HAMI_DEFAULT}; several with commas, or all.",
)
@click.option(
    "--seeds",
    default=1,
    show_default=True,
    type=click.IntRange(1, 1000),
    help=f"How many orders of arrival, from seed {FIRST_SEED} on.",
)
@click.option(
    "--demand",
    default=130.0,
    show_default=True,
    type=Percent(1, 1000),
    help="Arriving demand in percent of all cards.",
)
@click.option("--churn", type=Percent(1, 100), help="Let pods leave so that the load is held at this percentage.")
@click.option("--workers", type=click.IntRange(1, 256), help="Processes to use; by default one per core.")
@click.option("--output", "-o", type=click.Choice(["table", "json"]), default="table", show_default=True)
def command(
    nodes: Path | None,
    pods: Path | None,
    dump: Path | None,
    cluster: str | None,
    policy: str,
    seeds: int,
    demand: float,
    churn: float | None,
    workers: int | None,
    output: str,
) -> None:
    """Replay pods through the real engine and tell how full the cards get.

    \b
    tessera simulate --nodes nodes.csv --pods pods.csv --policy all --seeds 10
    tessera simulate --cluster 1000x8 --policy defrag,fgd --churn 90
    """
    policies = _policies(policy)
    scenario = _scenario(nodes, pods, dump, cluster)
    _tell(scenario.notes)
    campaign = Campaign(
        policies=policies,
        seeds=tuple(range(FIRST_SEED, FIRST_SEED + seeds)),
        demand_percent=demand,
        churn_percent=churn,
    )
    outcomes = _run(scenario, campaign, workers)
    if output == "json":
        report = report_of(outcomes)
        data = report[campaign.policies[0]] if policy != "all" and len(outcomes) == 1 else {"policies": report}
        click.echo(msgspec.json.format(msgspec.json.encode(data)))
    else:
        print_report(Console(), scenario, campaign, outcomes)


def _scenario(nodes: Path | None, pods: Path | None, dump: Path | None, cluster: str | None) -> Scenario:
    given = [name for name, value in (("--dump", dump), ("--cluster", cluster)) if value]
    if nodes or pods:
        given.append("--nodes and --pods")
    if len(given) != 1:
        found = " and ".join(given) or "nothing"
        raise InvalidTrace(f"{found} given, expected one of --nodes with --pods, --dump or --cluster")
    if dump is not None:
        return read_dump(dump)
    if cluster is not None:
        return make_up_cluster(cluster)
    if nodes is None or pods is None:
        raise InvalidTrace("only one of --nodes and --pods given, expected both: the cards and who wants them")
    return read_trace(nodes, pods)


def _policies(text: str) -> tuple[str, ...]:
    if text == "all":
        return POLICIES
    names = tuple(dict.fromkeys(name.strip() for name in text.split(",")))
    for name in names:
        try:
            parse_choice(name)
        except InvalidPolicy as error:
            raise InvalidPolicy(f'--policy is "{text}": {error}') from error
    return names


def _tell(notes: Sequence[str]) -> None:
    for note in notes[:MOST_NOTES]:
        click.echo(f"tessera: {note}", err=True)
    if len(notes) > MOST_NOTES:
        click.echo(f"tessera: and {len(notes) - MOST_NOTES} more", err=True)


def _run(scenario: Scenario, campaign: Campaign, workers: int | None) -> Mapping[str, Sequence[Outcome]]:
    title = f"{scenario.title}: {counted(len(campaign.policies) * len(campaign.seeds), 'replay')}"
    with shown_progress(title, Console(stderr=True)) as show:
        return run_campaign(scenario, campaign, workers=workers, on_progress=show)
