"""What `tessera run extender` is told on its command line, read and checked before anything starts.

A flag that would change nothing, or that contradicts another, is refused: whoever set it believes otherwise.
"""

import socket
from pathlib import Path

import msgspec

from tessera.apps.addresses import Address, read_address
from tessera.apps.secure_listener import SecureAddress
from tessera.apps.webhook_flags import WebhookFlags
from tessera.apps.webhook_options import read_key, read_webhook
from tessera.errors import InvalidRequest
from tessera.kube.objects import ObjectKey
from tessera.model.requests import PolicyChoice


class Flags(WebhookFlags):
    """As click gives them. Empty is as good as not there."""

    kubeconfig: Path | None
    http: str
    no_http: bool
    https: str
    tls_dir: Path | None
    metrics: str
    legacy_metrics: bool
    bind_events: bool
    node_policy: str
    card_policy: str
    leader_elect: bool
    follow_lease: str
    follow_host: str
    lease_namespace: str


class Options(msgspec.Struct, frozen=True, kw_only=True):
    """A listener that is None is off. `follow_lease` is the lease of the kube-scheduler beside us."""

    kubeconfig: Path | None
    policy: PolicyChoice
    http: Address | None
    https: SecureAddress | None
    webhook: SecureAddress | None
    metrics: Address | None
    legacy_metrics: bool
    bind_events: bool
    leader_elect: bool
    follow_lease: ObjectKey | None
    follow_host: str
    lease_namespace: str


def read_options(flags: Flags) -> Options:
    options = Options(
        kubeconfig=flags["kubeconfig"],
        policy=PolicyChoice(node=flags["node_policy"], cards=(flags["card_policy"],)),
        http=None if flags["no_http"] else read_address("--http", flags["http"]),
        https=_read_https(flags),
        webhook=read_webhook(flags),
        metrics=read_address("--metrics", flags["metrics"]),
        legacy_metrics=flags["legacy_metrics"],
        bind_events=flags["bind_events"],
        leader_elect=flags["leader_elect"],
        follow_lease=read_key("--follow-lease", flags["follow_lease"]),
        follow_host=flags["follow_host"] or socket.gethostname(),
        lease_namespace=flags["lease_namespace"],
    )
    _check_leading(options, flags)
    if not (options.http or options.https or options.webhook):
        raise InvalidRequest("nothing is served, expected --http, --https or --webhook; name one of them")
    return options


def _check_leading(options: Options, flags: Flags) -> None:
    if options.leader_elect and options.follow_lease:
        raise InvalidRequest(
            f'--leader-elect is set beside --follow-lease "{options.follow_lease}", expected one of them, because'
            " either we elect or kube-scheduler does; drop one"
        )
    if flags["follow_host"] and not options.follow_lease:
        raise InvalidRequest(
            f'--follow-host is "{options.follow_host}" without --follow-lease, expected both or none; name the lease'
        )


def _read_https(flags: Flags) -> SecureAddress | None:
    address, directory = read_address("--https", flags["https"]), flags["tls_dir"]
    if address is None and directory is None:
        return None
    if address is None:
        raise InvalidRequest(f'--tls-dir is "{directory}" without --https, expected both or none; name the address')
    if directory is None:
        raise InvalidRequest(
            f'--https is "{flags["https"]}" without --tls-dir, expected the directory of tls.crt and tls.key; name it'
        )
    return SecureAddress(address, directory)
