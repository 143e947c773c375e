"""A certificate for two containers of one pod, so that kube-scheduler knows whom it asks on loopback.

It is made where it is used and never leaves the pod. The authority's key is thrown away at once, so nobody can sign
another. It lives as long as the pod could: nothing renews it, and kube-scheduler reads its authority only once.
"""

from collections.abc import Iterable
from datetime import datetime, timedelta
from typing import NamedTuple

from tessera.admission.certificates.authorities import (
    is_signed_by,
    issue_serving,
    make_authority,
    names_of,
    read_certificate,
)
from tessera.errors import InvalidInput
from tessera.kube.tls import Certificate

LIFETIME = timedelta(days=3650)


class PodLocal(NamedTuple):
    """`authority` is the certificate, in PEM, by which `serving` is known."""

    authority: bytes
    serving: Certificate


def make_pod_local(names: Iterable[str], now: datetime) -> PodLocal:
    authority = make_authority(now, LIFETIME)
    return PodLocal(authority.chain, issue_serving(authority, names, now, LIFETIME))


def is_good_for(names: Iterable[str], made: PodLocal, now: datetime) -> bool:
    """Whether it serves under these names for half of a lifetime more; what cannot be read does not."""
    try:
        authority = read_certificate(made.authority, "the authority")
        serving = read_certificate(made.serving.chain, "the serving certificate")
    except InvalidInput:
        return False
    lasts = serving.not_valid_after_utc > now + LIFETIME / 2
    return lasts and is_signed_by(serving, authority) and names_of(serving) == frozenset(names)
