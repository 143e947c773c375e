"""TLS towards the API server: always verified, unless a kubeconfig says in so many words that it is not.

Python's ssl takes certificates with their keys from files only. Ours come from anywhere, so they pass through memory
that has a file name for an instant and is never on a disk.
"""

import os
import ssl

import msgspec

from tessera.errors import CredentialsFailed


class Certificate(msgspec.Struct, frozen=True):
    """A certificate chain and its key, both PEM."""

    chain: bytes
    key: bytes

    def __repr__(self) -> str:
        return "Certificate(…)"


class Trust(msgspec.Struct, frozen=True, kw_only=True):
    """Whom we believe to be the API server. Without authorities, those that the system believes."""

    authorities: bytes | None = None
    insecure: bool = False
    server_name: str | None = None


def make_context(trust: Trust, certificate: Certificate | None) -> ssl.SSLContext:
    try:
        return _make_context(trust, certificate)
    except (ssl.SSLError, ValueError) as error:
        raise CredentialsFailed(f"certificates: cannot be used ({error}), expected PEM and a key that fits") from None


def _make_context(trust: Trust, certificate: Certificate | None) -> ssl.SSLContext:
    authorities = trust.authorities.decode() if trust.authorities else None
    context = ssl.create_default_context(ssl.Purpose.SERVER_AUTH, cadata=authorities)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    if trust.insecure:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    if certificate:
        load_chain(context, certificate)
    return context


def load_chain(context: ssl.SSLContext, certificate: Certificate) -> None:
    memory = os.memfd_create("tessera-certificate", os.MFD_CLOEXEC)
    try:
        os.write(memory, certificate.chain + b"\n" + certificate.key)
        context.load_cert_chain(f"/proc/self/fd/{memory}")
    finally:
        os.close(memory)
