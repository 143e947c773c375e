"""The embedded API server as a process: one directory holds its state, its certificate and the way to it.

    D/state.db                      all objects
    D/ca.crt, D/tls.crt, D/tls.key  made at the first start; whoever trusts the first knows the server
    D/tokens.json                   who has which token, by its hash
    D/service-account.key           what signs the tokens of ServiceAccounts
    D/kubeconfig                    the administrator's

It is started by others (`tessera up`, tests) and is no command that users are shown.
"""

import json
import secrets
import ssl
import sys
from collections.abc import Mapping
from pathlib import Path

import click
import structlog
import uvloop

from tessera.apps.serving import Listener, serve_all
from tessera.cli.group import run
from tessera.embedded.access import Authorizer, Tokens, User
from tessera.embedded.access.state import read_tokens, signing_key, write_tokens
from tessera.embedded.access.tokens import fingerprint
from tessera.embedded.access.users import MASTERS
from tessera.embedded.admitting import Admission
from tessera.embedded.doors.webhook_services import WebhookServices
from tessera.embedded.resources import Registry
from tessera.embedded.resources.table import DEFINITIONS
from tessera.embedded.runtime.addresses import SERVICE_NETWORK, own_block
from tessera.embedded.runtime.leftovers import runtime_name
from tessera.embedded.serving import ApiServer, Site, StoreReader, bootstrap
from tessera.embedded.store import Store
from tessera.files import put_whole

HOST = "127.0.0.1"
ADMINISTRATOR = "kubernetes-admin"
PRIVATE = 0o600
RUNTIME = "runtime"
NAMES = (
    HOST,
    "localhost",
    "kubernetes",
    "kubernetes.default",
    "kubernetes.default.svc",
    "kubernetes.default.svc.cluster.local",
)


@click.command("api-server")
@click.option("--state-dir", type=click.Path(path_type=Path), required=True, help="Where everything is kept.")
@click.option("--port", type=int, default=6443, show_default=True, help="Where to listen, on loopback.")
def command(state_dir: Path, port: int) -> None:
    """Serve the Kubernetes API from one directory until told to stop."""
    log_without_secrets()
    keep_certificate(state_dir)
    uvloop.run(serve_api(state_dir, port))


def keep_certificate(state_dir: Path) -> None:
    """One for ten years, made when there is none."""
    if not (state_dir / "tls.key").exists():
        from tessera.apps.pod_local_files import keep_pod_local  # a third of a start's time, and needed once

        keep_pod_local(state_dir, NAMES)


def log_without_secrets() -> None:
    """To stderr, and a traceback without the values in it: one of them is somebody's token."""
    structlog.configure(
        processors=[
            structlog.processors.add_log_level,
            structlog.processors.TimeStamper(fmt="iso"),
            structlog.dev.ConsoleRenderer(colors=False, exception_formatter=structlog.dev.plain_traceback),
        ],
        logger_factory=structlog.PrintLoggerFactory(sys.stderr),
    )


async def serve_api(state_dir: Path, port: int) -> None:
    store = Store.open(state_dir / "state.db")
    try:
        site = compose(state_dir, store, port, keep_administrator(state_dir, port))
        await bootstrap(site)
        await serve_all(Listener(ApiServer(site), HOST, port, tls_context(state_dir)))
    finally:
        store.close()


def tls_context(state_dir: Path) -> ssl.SSLContext:
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(state_dir / "tls.crt", state_dir / "tls.key")
    return context


def compose(state_dir: Path, store: Store, port: int, static: Mapping[str, User]) -> Site:
    reader = StoreReader(store)
    return Site(
        store=store,
        registry=Registry(reader.list(DEFINITIONS.resource)),
        tokens=Tokens(store, signing_key(state_dir), static),
        authorizer=Authorizer(store),
        admission=Admission(reader, WebhookServices(reader)),
        authority=(state_dir / "ca.crt").read_text(),
        address=f"{HOST}:{port}",
        service_network=own_block(runtime_name(state_dir / RUNTIME), SERVICE_NETWORK),
    )


def keep_administrator(state_dir: Path, port: int) -> Mapping[str, User]:
    """Everybody with a token, the administrator among them, whose kubeconfig says where the server is this time."""
    path, known = state_dir / "kubeconfig", read_tokens(state_dir)
    token = _token_in(path)
    if fingerprint(token) not in known:
        token = secrets.token_urlsafe()
        known[fingerprint(token)] = User(name=ADMINISTRATOR, groups=(MASTERS,))
        write_tokens(state_dir, known)
    put_whole(path, kubeconfig(f"https://{HOST}:{port}", state_dir / "ca.crt", token), mode=PRIVATE)
    return known


def _token_in(path: Path) -> str:
    """What an earlier start wrote there; nothing, if none did."""
    if not path.exists():
        return ""
    try:
        return str(json.loads(path.read_bytes())["users"][0]["user"]["token"])
    except (ValueError, LookupError, TypeError):
        return ""


def kubeconfig(server: str, authority: Path, token: str) -> bytes:
    """For kubectl and everybody who reads what it reads."""
    document = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "tessera", "cluster": {"server": server, "certificate-authority": str(authority)}}],
        "users": [{"name": "tessera", "user": {"token": token}}],
        "contexts": [{"name": "tessera", "context": {"cluster": "tessera", "user": "tessera"}}],
        "current-context": "tessera",
    }
    return json.dumps(document, indent=2).encode()


if __name__ == "__main__":
    run(command)  # type: ignore[arg-type] # it asks a group for nothing that a command has not
