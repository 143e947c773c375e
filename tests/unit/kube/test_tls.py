"""TLS is verified unless somebody wrote that it is not, and keys do not touch the disk."""

import ssl
import tempfile
from pathlib import Path

import pytest

from tessera.errors import CredentialsFailed
from tessera.kube.tls import Certificate, Trust, make_context
from tests.unit.kube.certificates import make_certificate


def test_the_server_is_verified_by_default() -> None:
    context = make_context(Trust(), None)

    assert (context.verify_mode, context.check_hostname) == (ssl.CERT_REQUIRED, True)


def test_only_the_authorities_that_are_named_are_believed() -> None:
    context = make_context(Trust(authorities=make_certificate("ca").chain), None)

    assert context.cert_store_stats()["x509"] == 1


def test_verification_is_off_only_where_it_is_said() -> None:
    assert make_context(Trust(insecure=True), None).verify_mode == ssl.CERT_NONE


def test_a_key_is_loaded_without_a_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))

    make_context(Trust(), make_certificate())

    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("chain", [b"", b"nonsense", make_certificate("another").chain])
def test_a_certificate_without_its_key_is_refused(chain: bytes) -> None:
    with pytest.raises(CredentialsFailed, match="expected PEM and a key that fits"):
        make_context(Trust(), Certificate(chain, make_certificate().key))


def test_authorities_that_are_no_certificates_are_refused() -> None:
    with pytest.raises(CredentialsFailed, match="certificates: cannot be used"):
        make_context(Trust(authorities=b"nonsense"), None)


def test_a_certificate_does_not_show_its_key() -> None:
    certificate = make_certificate()

    assert "PRIVATE" not in repr(certificate)
