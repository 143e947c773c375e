"""Flags that contradict each other, or that would change nothing, are one sentence before anything starts."""

import socket
from pathlib import Path
from typing import Any, cast

import pytest

from tessera.admission.certificates import Place
from tessera.apps.addresses import Address
from tessera.apps.extender_options import Flags, read_options
from tessera.apps.secure_listener import SecureAddress
from tessera.errors import InvalidRequest
from tessera.kube.objects import ObjectKey

DEFAULTS: Flags = {
    "kubeconfig": None,
    "http": "127.0.0.1:8080",
    "no_http": False,
    "https": "",
    "tls_dir": None,
    "webhook": "",
    "webhook_tls_dir": None,
    "webhook_secret": "",
    "webhook_configuration": "",
    "webhook_host": (),
    "metrics": "",
    "legacy_metrics": True,
    "bind_events": False,
    "node_policy": "binpack",
    "card_policy": "spread",
    "leader_elect": False,
    "follow_lease": "",
    "follow_host": "",
    "lease_namespace": "default",
}
TLS = Path("/tls")
KEPT: dict[str, Any] = {
    "webhook_secret": "kube-system/webhook-tls",
    "webhook_configuration": "hami-webhook",
    "webhook_host": ("hami-scheduler.kube-system.svc",),
}


def flags(**changes: Any) -> Flags:
    return cast("Flags", {**DEFAULTS, **changes})


def test_without_flags_plain_http_is_served_on_loopback_and_nothing_else():
    options = read_options(flags())
    assert options.http == Address("127.0.0.1", 8080)
    assert (options.https, options.webhook, options.metrics, options.follow_lease) == (None, None, None, None)


@pytest.mark.parametrize("off", [{"http": ""}, {"no_http": True}])
def test_plain_http_can_be_turned_off(off: dict[str, Any]):
    assert read_options(flags(https="[::1]:8443", tls_dir=TLS, **off)).http is None


def test_a_listener_may_have_an_address_of_the_other_family():
    assert read_options(flags(https="[::1]:8443", tls_dir=TLS)).https == SecureAddress(Address("::1", 8443), TLS)


def test_the_webhook_has_its_certificate_from_files_or_from_a_secret_that_we_keep():
    files = read_options(flags(webhook="0.0.0.0:9443", webhook_tls_dir=TLS)).webhook
    assert files == SecureAddress(Address("0.0.0.0", 9443), TLS)
    kept = read_options(flags(webhook="0.0.0.0:9443", **KEPT)).webhook
    assert kept is not None
    secret = ObjectKey("kube-system", "webhook-tls")
    assert kept.certificate == Place(secret=secret, configuration="hami-webhook", names=KEPT["webhook_host"])


def test_the_host_that_is_followed_is_ours_unless_another_is_named():
    assert read_options(flags(follow_lease="kube-system/hami-scheduler")).follow_host == socket.gethostname()
    assert read_options(flags(follow_lease="kube-system/hami-scheduler", follow_host="a")).follow_host == "a"


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"http": "8080"}, '--http is "8080", expected an address and a port'),
        ({"metrics": "127.0.0.1:99999"}, '--metrics is "127.0.0.1:99999", expected an address'),
        ({"https": "127.0.0.1:8443"}, "--https .* without --tls-dir"),
        ({"tls_dir": TLS}, '--tls-dir is "/tls" without --https'),
        ({"webhook": "0.0.0.0:9443"}, "--webhook .* without a certificate"),
        ({"webhook_tls_dir": TLS}, "has a certificate and no address"),
        ({"webhook": "0.0.0.0:9443", "webhook_tls_dir": TLS, **KEPT}, "--webhook-tls-dir .* beside --webhook-secret"),
        ({"webhook": "0.0.0.0:9443", **KEPT, "webhook_host": ()}, "--webhook-secret is set without --webhook-host"),
        ({"webhook": "0.0.0.0:9443", **KEPT, "webhook_secret": "webhook-tls"}, "expected a namespace and a name"),
        ({"leader_elect": True, "follow_lease": "a/b"}, "--leader-elect is set beside --follow-lease"),
        ({"follow_host": "a"}, '--follow-host is "a" without --follow-lease'),
        ({"no_http": True}, "nothing is served"),
    ],
)
def test_what_does_not_go_together_is_told(changes: dict[str, Any], sentence: str):
    with pytest.raises(InvalidRequest, match=sentence):
        read_options(flags(**changes))
