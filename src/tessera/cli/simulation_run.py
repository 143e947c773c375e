"""A simulation as it was asked for on the command line: read, replayed and shown."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TypedDict

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

HAMI_DEFAULT = "binpack/spread"
ALL_POLICIES = (*(name for name in NODE_POLICIES if name != "topology-aware"), HAMI_DEFAULT)
MOST_NOTES = 10


class Flags(TypedDict):
    """As click gives them."""

    nodes: Path | None
    pods: Path | None
    dump: Path | None
    cluster: str | None
    policy: str
    seeds: int
    demand: float
    churn: float | None
    workers: int | None
    output: str


def run(flags: Flags, first_seed: int) -> None:
    policies = _policies(flags["policy"])
    scenario = _scenario(flags)
    _tell(scenario.notes)
    campaign = Campaign(
        policies=policies,
        seeds=tuple(range(first_seed, first_seed + flags["seeds"])),
        demand_percent=flags["demand"],
        churn_percent=flags["churn"],
    )
    outcomes = _replay(scenario, campaign, flags["workers"])
    if flags["output"] == "json":
        report = report_of(outcomes)
        is_single = flags["policy"] != "all" and len(outcomes) == 1
        data = report[campaign.policies[0]] if is_single else {"policies": report}
        click.echo(msgspec.json.format(msgspec.json.encode(data)))
    else:
        print_report(Console(), scenario, campaign, outcomes)


def _scenario(flags: Flags) -> Scenario:
    nodes, pods, dump, cluster = flags["nodes"], flags["pods"], flags["dump"], flags["cluster"]
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
        return ALL_POLICIES
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


def _replay(scenario: Scenario, campaign: Campaign, workers: int | None) -> Mapping[str, Sequence[Outcome]]:
    title = f"{scenario.title}: {counted(len(campaign.policies) * len(campaign.seeds), 'replay')}"
    with shown_progress(title, Console(stderr=True)) as show:
        return run_campaign(scenario, campaign, workers=workers, on_progress=show)
