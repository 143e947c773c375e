"""`tessera certificates pod-local`: what lets kube-scheduler verify the extender beside it."""

import ssl
import stat
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from click.testing import CliRunner

from tessera.admission.certificates.authorities import names_of, read_certificate
from tessera.admission.certificates.pod_local import LIFETIME, is_good_for, make_pod_local
from tessera.apps.certificates import command
from tessera.errors import InvalidRequest

NOW = datetime(2026, 3, 1, tzinfo=UTC)
HOSTS = ("127.0.0.1", "localhost")


def run(out: Path, *hosts: str) -> None:
    named = [argument for host in hosts for argument in ("--host", host)]
    CliRunner().invoke(command, ["pod-local", "--out", str(out), *named], catch_exceptions=False, standalone_mode=False)


def contents(out: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in out.iterdir()}


def test_it_is_verified_by_its_own_authority_and_served_under_its_names(tmp_path: Path):
    out = tmp_path / "made" / "tls"
    run(out, *HOSTS)
    assert set(contents(out)) == {"ca.crt", "tls.crt", "tls.key"}
    assert names_of(read_certificate((out / "tls.crt").read_bytes(), "it")) == set(HOSTS)
    client, server = ssl.create_default_context(cafile=str(out / "ca.crt")), ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    server.load_cert_chain(out / "tls.crt", out / "tls.key")
    shake_hands(client, server, "localhost")
    with pytest.raises(ssl.SSLCertVerificationError, match="certificate is not valid for"):
        shake_hands(client, server, "elsewhere")


def test_the_key_is_for_its_owner_only(tmp_path: Path):
    run(tmp_path, *HOSTS)
    modes = {path.name: stat.S_IMODE(path.stat().st_mode) for path in tmp_path.iterdir()}
    assert modes["tls.key"] == 0o600
    assert modes["ca.crt"] & 0o044, "kube-scheduler may be somebody else"


def test_a_repetition_leaves_what_is_good_as_it_is(tmp_path: Path):
    """kube-scheduler reads its authority once: another one would cut it off."""
    run(tmp_path, *HOSTS)
    before = contents(tmp_path)
    run(tmp_path, *HOSTS)
    assert contents(tmp_path) == before


@pytest.mark.parametrize("spoil", ["ca.crt", "tls.crt"])
def test_what_is_no_longer_good_is_made_anew(tmp_path: Path, spoil: str):
    run(tmp_path, *HOSTS)
    (tmp_path / spoil).write_text("cut off")
    run(tmp_path, *HOSTS)
    assert b"cut off" not in contents(tmp_path)[spoil]
    run(tmp_path, "localhost")
    assert names_of(read_certificate((tmp_path / "tls.crt").read_bytes(), "it")) == {"localhost"}


def test_it_is_good_for_half_of_ten_years_under_its_own_names_and_authority():
    made = make_pod_local(HOSTS, NOW)
    assert is_good_for(HOSTS, made, NOW + LIFETIME / 2 - timedelta(days=1))
    assert not is_good_for(HOSTS, made, NOW + LIFETIME / 2)
    assert not is_good_for(("localhost",), made, NOW)
    assert not is_good_for(HOSTS, made._replace(authority=make_pod_local(HOSTS, NOW).authority), NOW)


def test_a_directory_that_cannot_be_written_is_one_sentence():
    with pytest.raises(InvalidRequest, match=r"--out /proc/none: .* cannot be used"):
        run(Path("/proc/none"), *HOSTS)


def shake_hands(client: ssl.SSLContext, server: ssl.SSLContext, name: str) -> None:
    """Both sides of a handshake in memory."""
    there, back = ssl.MemoryBIO(), ssl.MemoryBIO()
    asking = client.wrap_bio(back, there, server_hostname=name)
    asked = server.wrap_bio(there, back, server_side=True)
    for _ in range(4):
        for side in (asking, asked):
            try:
                side.do_handshake()
            except ssl.SSLWantReadError:
                continue
