"""`tessera up --cluster`: a cluster that is there already, instead of one on this machine. Nothing is started."""

import asyncio
import shlex
from collections.abc import Mapping
from pathlib import Path

import click

from tessera.errors import InvalidRequest

INSTALL = "helm install gpu-scheduler charts/gpu-scheduler"


def use_cluster(kubeconfig: Path, said: Mapping[str, object]) -> None:
    """`said` are the other options by name, as they were given. Raises what keeps the cluster from being reached."""
    contradicting = next((name for name, value in said.items() if value), None)
    if contradicting:
        raise InvalidRequest(
            f"--cluster uses a cluster that is there and --{contradicting} is about a new one; drop one"
        )
    path = kubeconfig.absolute()
    click.echo(f"Kubernetes {asyncio.run(_version(path))} answers; nothing was started", err=True)
    click.echo("Next:", err=True)
    click.echo(f"export KUBECONFIG={shlex.quote(str(path))}")
    for line in ("tessera doctor", INSTALL, "tessera nodes"):
        click.echo(line, err=True)


async def _version(kubeconfig: Path) -> str:
    from tessera.apps.reaching import reached  # who makes a cluster of their own needs none of it

    async with reached(kubeconfig, None) as client:
        return str((await client.server_version())["gitVersion"])
