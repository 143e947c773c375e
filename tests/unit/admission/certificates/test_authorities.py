"""Certificates that cannot be read are told of in a sentence."""

from datetime import UTC, datetime, timedelta

import pytest

from tessera.admission.certificates.authorities import issue_serving, make_authority, names_of, read_certificate
from tessera.errors import InvalidInput
from tessera.kube.tls import Certificate

NOW, DAY = datetime(2026, 1, 1, tzinfo=UTC), timedelta(days=1)


@pytest.mark.parametrize("text", [b"", b"-----BEGIN CERTIFICATE-----", b"\xff"])
def test_a_text_without_certificates_is_refused(text):
    with pytest.raises(InvalidInput) as refused:
        read_certificate(text, "secret kube-system/tls: ca.crt")
    assert str(refused.value) == (
        "secret kube-system/tls: ca.crt cannot be read, expected certificates in PEM; delete it to have it made"
    )


@pytest.mark.parametrize("key", [b"", b"-----BEGIN PRIVATE KEY-----"])
def test_a_key_that_is_none_is_refused(key):
    authority = make_authority(NOW, DAY)
    with pytest.raises(InvalidInput, match="the authority's key cannot be read, expected an elliptic curve key"):
        issue_serving(Certificate(authority.chain, key), ["a"], NOW, DAY)


def test_an_authority_serves_under_no_name():
    assert names_of(read_certificate(make_authority(NOW, DAY).chain, "the authority")) == frozenset()
