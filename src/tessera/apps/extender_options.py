"""What `tessera run extender` is told on its command line, read and checked before anything starts.

A flag that would change nothing, or that contradicts another, is refused: whoever set it believes otherwise.
"""

import socket
from pathlib import Path
from typing import TypedDict

import msgspec

from tessera.admission.certificates import Place
from tessera.apps.addresses import Address, read_address
from tessera.errors import InvalidRequest
from tessera.kube.objects import ObjectKey
from tessera.model.requests import PolicyChoice


class Flags(TypedDict):
    """As click gives them. Empty is as good as not there."""

    kubeconfig: Path | None
    http: str
    no_http: bool
    https: str
    tls_dir: Path | None
    webhook: str
    webhook_tls_dir: Path | None
    webhook_secret: str
    webhook_configuration: str
    webhook_host: tuple[str, ...]
    metrics: str
    legacy_metrics: bool
    bind_events: bool
    node_policy: str
    card_policy: str
    leader_elect: bool
    follow_lease: str
    follow_host: str


class SecureAddress(msgspec.Struct, frozen=True):
    """Where to serve TLS, and where its certificate comes from: files, or a Secret that we keep ourselves."""

    address: Address
    certificate: Path | Place


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


def read_options(flags: Flags) -> Options:
    options = Options(
        kubeconfig=flags["kubeconfig"],
        policy=PolicyChoice(node=flags["node_policy"], cards=(flags["card_policy"],)),
        http=None if flags["no_http"] else read_address("--http", flags["http"]),
        https=_read_https(flags),
        webhook=_read_webhook(flags),
        metrics=read_address("--metrics", flags["metrics"]),
        legacy_metrics=flags["legacy_metrics"],
        bind_events=flags["bind_events"],
        leader_elect=flags["leader_elect"],
        follow_lease=_read_key("--follow-lease", flags["follow_lease"]),
        follow_host=flags["follow_host"] or socket.gethostname(),
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


def _read_key(flag: str, text: str) -> ObjectKey | None:
    if not text:
        return None
    namespace, slash, name = text.partition("/")
    if not namespace or not slash or not name or "/" in name:
        raise InvalidRequest(f'{flag} is "{text}", expected a namespace and a name such as kube-system/hami-scheduler')
    return ObjectKey(namespace, name)


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


def _read_webhook(flags: Flags) -> SecureAddress | None:
    address, directory, place = (
        read_address("--webhook", flags["webhook"]),
        flags["webhook_tls_dir"],
        _read_place(flags),
    )
    if address is None and (directory or place):
        raise InvalidRequest("the webhook has a certificate and no address, expected --webhook too; name the address")
    if address is None:
        return None
    if directory is not None and place is not None:
        raise InvalidRequest(
            f'--webhook-tls-dir is "{directory}" beside --webhook-secret "{place.secret}", expected one of them,'
            " because either others keep the certificate or we do; drop one"
        )
    certificate = directory or place
    if certificate is None:
        raise InvalidRequest(
            f'--webhook is "{flags["webhook"]}" without a certificate, expected --webhook-tls-dir, or --webhook-secret'
            " with --webhook-configuration and --webhook-host; name one"
        )
    return SecureAddress(address, certificate)


def _read_place(flags: Flags) -> Place | None:
    secret = _read_key("--webhook-secret", flags["webhook_secret"])
    configuration, names = flags["webhook_configuration"], flags["webhook_host"]
    parts = {"--webhook-secret": secret, "--webhook-configuration": configuration, "--webhook-host": names}
    missing = [flag for flag, value in parts.items() if not value]
    if len(missing) == len(parts):
        return None
    if secret is None or missing:
        there = next(flag for flag, value in parts.items() if value)
        raise InvalidRequest(
            f"{there} is set without {' and '.join(missing)}, expected all three; name what is missing"
        )
    return Place(secret=secret, configuration=configuration, names=names)
