"""What to do next about the webhook's certificates, one step at a time.

An API server trusts what the `caBundle` of the webhook configuration holds, and learns of changes a little later. So a
new authority is announced first, beside the old one. Only when everybody has had time to hear of it is a certificate
signed by it, and the old authority stays trusted until it ends: whoever still serves with the old certificate is
believed all the while.
"""

from collections.abc import Iterable
from datetime import datetime, timedelta
from enum import StrEnum

import msgspec
from cryptography import x509

from tessera.admission.certificates.authorities import (
    CLOCKS_APART,
    as_pem,
    is_signed_by,
    issue_serving,
    make_authority,
    names_of,
    read_certificate,
    read_certificates,
)
from tessera.kube.tls import Certificate


class Lifetimes(msgspec.Struct, frozen=True, kw_only=True):
    """`announced` is how long a new authority is made known before anything is signed by it."""

    authority: timedelta = timedelta(days=365)
    serving: timedelta = timedelta(days=90)
    announced: timedelta = timedelta(minutes=10)


DEFAULT_LIFETIMES = Lifetimes()


class Material(msgspec.Struct, frozen=True, kw_only=True):
    """All that is kept. `authorities` are PEM texts, the newest first; `authority_key` belongs to that one."""

    authorities: tuple[bytes, ...]
    authority_key: bytes
    serving: Certificate

    @property
    def bundle(self) -> bytes:
        return b"".join(self.authorities)

    @property
    def signer(self) -> Certificate:
        return Certificate(self.authorities[0], self.authority_key)

    def __repr__(self) -> str:
        return "Material(…)"


class Step(StrEnum):
    KEEP = "keep"
    BEGIN = "begin"
    ANNOUNCE_AUTHORITY = "announce authority"
    ISSUE_SERVING = "issue serving certificate"
    FORGET_AUTHORITIES = "forget authorities"


def split_bundle(bundle: bytes, what: str) -> tuple[bytes, ...]:
    return tuple(as_pem(certificate) for certificate in read_certificates(bundle, what))


def next_step(material: Material | None, names: Iterable[str], lifetimes: Lifetimes, now: datetime) -> Step:
    if material is None:
        return Step.BEGIN
    newest, *older = (read_certificate(text, "an authority") for text in material.authorities)
    if _is_due(newest, now):
        return Step.ANNOUNCE_AUTHORITY
    serving = read_certificate(material.serving.chain, "the serving certificate")
    is_useless = _has_ended(serving, now) or names_of(serving) != frozenset(names)
    if is_useless or _is_to_be_signed_anew(serving, newest, older, lifetimes, now):
        return Step.ISSUE_SERVING
    return Step.FORGET_AUTHORITIES if any(_has_ended(one, now) for one in older) else Step.KEEP


def take_step(
    step: Step, material: Material | None, names: Iterable[str], lifetimes: Lifetimes, now: datetime
) -> Material:
    if material is None or step is Step.BEGIN:
        return _begin(names, lifetimes, now)
    match step:
        case Step.ANNOUNCE_AUTHORITY:
            authority = make_authority(now, lifetimes.authority)
            known = (authority.chain, *_lasting(material.authorities, now))
            return Material(authorities=known, authority_key=authority.key, serving=material.serving)
        case Step.ISSUE_SERVING:
            serving = issue_serving(material.signer, names, now, lifetimes.serving)
            return msgspec.structs.replace(material, serving=serving)
        case Step.FORGET_AUTHORITIES:
            return msgspec.structs.replace(material, authorities=_lasting(material.authorities, now))
        case Step.KEEP:
            return material


def _begin(names: Iterable[str], lifetimes: Lifetimes, now: datetime) -> Material:
    authority = make_authority(now, lifetimes.authority)
    serving = issue_serving(authority, names, now, lifetimes.serving)
    return Material(authorities=(authority.chain,), authority_key=authority.key, serving=serving)


def _is_to_be_signed_anew(
    serving: x509.Certificate,
    newest: x509.Certificate,
    older: Iterable[x509.Certificate],
    lifetimes: Lifetimes,
    now: datetime,
) -> bool:
    if is_signed_by(serving, newest):
        return _is_due(serving, now)
    is_heard_of = now >= newest.not_valid_before_utc + CLOCKS_APART + lifetimes.announced
    return is_heard_of or not any(is_signed_by(serving, one) for one in older)


def _is_due(certificate: x509.Certificate, now: datetime) -> bool:
    """After two thirds of its life, so that a third is left for whatever goes wrong."""
    begin, end = certificate.not_valid_before_utc, certificate.not_valid_after_utc
    return now >= begin + (end - begin) * 2 / 3


def _has_ended(certificate: x509.Certificate, now: datetime) -> bool:
    return now >= certificate.not_valid_after_utc


def _lasting(authorities: Iterable[bytes], now: datetime) -> tuple[bytes, ...]:
    return tuple(text for text in authorities if not _has_ended(read_certificate(text, "an authority"), now))
