"""`tessera simulate`: what would a policy have done with this cluster and these pods?"""

import sys
from pathlib import Path

import click
import msgspec
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

from tessera.cli.simulation_report import print_report, report_of
from tessera.engine.policies import NODE_POLICIES
from tessera.errors import InvalidTrace
from tessera.simulation import campaign as campaigns
from tessera.simulation.campaign import Campaign, run_campaign
from tessera.simulation.dump import read_dump
from tessera.simulation.made_up import make_up_cluster
from tessera.simulation.replay import Outcome
from tessera.simulation.scenario import Scenario
from tessera.simulation.trace import read_trace

FIRST_SEED = 42
POLICIES = tuple(name for name in NODE_POLICIES if name != "topology-aware")


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
    "--policy", default="defrag", show_default=True, help=f"One of {', '.join(POLICIES)}, several with commas, or all."
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
    type=click.FloatRange(1, 1000),
    help="Arriving demand in percent of all cards.",
)
@click.option(
    "--churn", type=click.FloatRange(1, 100), help="Let pods leave so that the load is held at this percentage."
)
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
    scenario = _scenario(nodes, pods, dump, cluster)
    campaign = Campaign(
        policies=_policies(policy),
        seeds=tuple(range(FIRST_SEED, FIRST_SEED + seeds)),
        demand_percent=demand,
        churn_percent=churn,
    )
    outcomes = _run(scenario, campaign, workers)
    if output == "json":
        report = report_of(outcomes)
        data = report[campaign.policies[0]] if policy != "all" and len(outcomes) == 1 else {"policies": report}
        sys.stdout.buffer.write(msgspec.json.format(msgspec.json.encode(data)) + b"\n")
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
        if name not in POLICIES:
            raise InvalidTrace(f'--policy is "{name}", expected {", ".join(POLICIES)} or all')
    return names


def _run(scenario: Scenario, campaign: Campaign, workers: int | None) -> dict[str, list[Outcome]]:
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        TextColumn("{task.percentage:>3.0f}%"),
        TimeElapsedColumn(),
    )
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(f"{scenario.title}: {len(campaign.policies) * len(campaign.seeds)} replays", total=1.0)

        def show(progress: campaigns.Progress) -> None:
            bar.update(task, completed=progress.part)

        outcomes = run_campaign(scenario, campaign, workers=workers, on_progress=show)
    return {policy: list(found) for policy, found in outcomes.items()}
