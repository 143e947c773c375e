"""`tessera certificates`: what is made before the processes that use it start."""

from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path

import click

from tessera.admission.certificates.pod_local import PodLocal, is_good_for, make_pod_local
from tessera.errors import InvalidRequest
from tessera.files import put_whole
from tessera.kube.tls import Certificate

PUBLIC, SECRET = 0o644, 0o600


@click.group("certificates")
def command() -> None:
    """Make certificates for our own processes."""


@command.command("pod-local")
@click.option("--out", type=click.Path(path_type=Path), required=True, help="Where ca.crt, tls.crt and tls.key go.")
@click.option("--host", "hosts", multiple=True, required=True, help="A name or address to serve under; repeatable.")
def pod_local(out: Path, hosts: tuple[str, ...]) -> None:
    """Let kube-scheduler verify the extender beside it. What is there and good is left as it is."""
    try:
        keep_pod_local(out, hosts)
    except OSError as error:
        raise InvalidRequest(
            f"--out {out}: {error.filename or out} cannot be used: {error.strerror}, expected a directory that we may"
            " write; name another"
        ) from error


def keep_pod_local(out: Path, hosts: tuple[str, ...]) -> None:
    now = datetime.now(UTC)
    found = _read(out)
    if found is None or not is_good_for(hosts, found, now):
        out.mkdir(parents=True, exist_ok=True)
        _write(out, make_pod_local(hosts, now))


def _read(out: Path) -> PodLocal | None:
    with suppress(FileNotFoundError):
        chain, key = (out / "tls.crt").read_bytes(), (out / "tls.key").read_bytes()
        return PodLocal((out / "ca.crt").read_bytes(), Certificate(chain, key))
    return None


def _write(out: Path, made: PodLocal) -> None:
    put_whole(out / "ca.crt", made.authority, mode=PUBLIC)
    put_whole(out / "tls.crt", made.serving.chain, mode=PUBLIC)
    put_whole(out / "tls.key", made.serving.key, mode=SECRET)
