"""`tessera simulate`: what would a policy have done with this cluster and these pods?"""

import math
from pathlib import Path
from typing import TYPE_CHECKING, Any, Unpack

import click

if TYPE_CHECKING:
    from tessera.cli.simulation_run import Flags

FIRST_SEED = 42
POLICIES = "binpack, spread, topology-aware, defrag, fgd, best-fit, dot-product or random"
"""As the engine has them. To ask it would let whoever wants help wait for its arrays."""


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
    help=f"One of {POLICIES}, or NODE/CARD such as binpack/spread; several with commas, or all.",
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
def command(**flags: "Unpack[Flags]") -> None:
    """Replay pods through the real engine and tell how full the cards get.

    \b
    tessera simulate --nodes nodes.csv --pods pods.csv --policy all --seeds 10
    tessera simulate --cluster 1000x8 --policy defrag,fgd --churn 90
    """
    from tessera.cli.simulation_run import run

    run(flags, FIRST_SEED)
