"""`tessera certificates`: what is made before the processes that use it start."""

from pathlib import Path

import click

from tessera.errors import InvalidRequest


@click.group("certificates")
def command() -> None:
    """Make certificates for our own processes."""


@command.command("pod-local")
@click.option("--out", type=click.Path(path_type=Path), required=True, help="Where ca.crt, tls.crt and tls.key go.")
@click.option("--host", "hosts", multiple=True, required=True, help="A name or address to serve under; repeatable.")
def pod_local(out: Path, hosts: tuple[str, ...]) -> None:
    """Let kube-scheduler verify the extender beside it. What is there and good is left as it is."""
    from tessera.apps.pod_local_files import keep_pod_local

    try:
        keep_pod_local(out, hosts)
    except OSError as error:
        raise InvalidRequest(
            f"--out {out}: {error.filename or out} cannot be used: {error.strerror}, expected a directory that we may"
            " write; name another"
        ) from error
