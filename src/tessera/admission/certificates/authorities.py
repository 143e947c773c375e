"""Certificates as they are made and read: an authority that signs, and a certificate to serve with.

Keys are drawn anew each time and are on the P-256 curve. Times come in as arguments.
"""

import ipaddress
from collections.abc import Iterable
from datetime import datetime, timedelta

from cryptography import x509
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from tessera.errors import InvalidInput
from tessera.kube.tls import Certificate

CLOCKS_APART = timedelta(minutes=5)
"""A certificate counts from a little before it is made, because clocks differ."""


def make_authority(now: datetime, lifetime: timedelta) -> Certificate:
    key = ec.generate_private_key(ec.SECP256R1())
    name = _name(f"Tessera webhook authority {now:%Y-%m-%dT%H:%M:%SZ}")
    builder = (
        _builder(name, name, key.public_key(), now, now + lifetime)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(_usage(signs_certificates=True), critical=True)
    )
    return _as_text(builder.sign(key, hashes.SHA256()), key)


def issue_serving(authority: Certificate, names: Iterable[str], now: datetime, lifetime: timedelta) -> Certificate:
    """For a server under these names and addresses; it does not outlive the authority."""
    signer = read_certificate(authority.chain, "the authority")
    signing_key = _read_key(authority.key, "the authority's key")
    if signing_key.public_key() != signer.public_key():
        raise InvalidInput("the authority's key is another's, expected the one of its certificate; delete both")
    key = ec.generate_private_key(ec.SECP256R1())
    end = min(now + lifetime, signer.not_valid_after_utc)
    builder = (
        _builder(_name("tessera-webhook"), signer.subject, key.public_key(), now, end)
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(_usage(signs_certificates=False), critical=True)
        .add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]), critical=False)
        .add_extension(x509.SubjectAlternativeName([_general_name(name) for name in names]), critical=False)
        .add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(signing_key.public_key()), critical=False)
    )
    return _as_text(builder.sign(signing_key, hashes.SHA256()), key)


def read_certificate(text: bytes, what: str) -> x509.Certificate:
    """The first certificate of a PEM text. `what` it is, for the sentence if it cannot be read."""
    return read_certificates(text, what)[0]


def read_certificates(text: bytes, what: str) -> list[x509.Certificate]:
    try:
        return x509.load_pem_x509_certificates(text)
    except ValueError:
        raise InvalidInput(f"{what} cannot be read, expected certificates in PEM; delete it to have it made") from None


def as_pem(certificate: x509.Certificate) -> bytes:
    return certificate.public_bytes(serialization.Encoding.PEM)


def names_of(certificate: x509.Certificate) -> frozenset[str]:
    """The names and addresses that it may serve under."""
    try:
        names = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    except x509.ExtensionNotFound:
        return frozenset()
    addresses = (str(address) for address in names.get_values_for_type(x509.IPAddress))
    return frozenset((*names.get_values_for_type(x509.DNSName), *addresses))


def is_signed_by(certificate: x509.Certificate, authority: x509.Certificate) -> bool:
    try:
        certificate.verify_directly_issued_by(authority)
    except (InvalidSignature, ValueError, TypeError):
        return False
    return True


def _builder(
    subject: x509.Name, issuer: x509.Name, key: ec.EllipticCurvePublicKey, now: datetime, end: datetime
) -> x509.CertificateBuilder:
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key)
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - CLOCKS_APART)
        .not_valid_after(end)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key), critical=False)
    )


def _usage(*, signs_certificates: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=True,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        key_cert_sign=signs_certificates,
        crl_sign=signs_certificates,
        encipher_only=False,
        decipher_only=False,
    )


def _name(common_name: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, common_name)])


def _general_name(name: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(name))
    except ValueError:
        return x509.DNSName(name)


def _read_key(text: bytes, what: str) -> ec.EllipticCurvePrivateKey:
    try:
        key = serialization.load_pem_private_key(text, password=None)
    except (ValueError, TypeError):
        key = None
    if not isinstance(key, ec.EllipticCurvePrivateKey):
        raise InvalidInput(f"{what} cannot be read, expected an elliptic curve key in PEM; delete it to have it made")
    return key


def _as_text(certificate: x509.Certificate, key: ec.EllipticCurvePrivateKey) -> Certificate:
    private = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    return Certificate(as_pem(certificate), private)
