"""Credentials are asked for anew, and kept only as long as they are good."""

import base64
from pathlib import Path

import pytest

from tessera.errors import CredentialsFailed, InvalidKubeconfig
from tessera.kube.credentials import REREAD_S, Credential, ReadCredentials, bearer, read_token, read_user
from tessera.kube.kubeconfig import User
from tests.unit.kube.clocks import FakeClock


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
def token_file(tmp_path: Path) -> Path:
    file = tmp_path / "token"
    file.write_text("first\n")
    return file


def from_file(token_file: Path, clock: FakeClock) -> ReadCredentials:
    return ReadCredentials(lambda: Credential((bearer(read_token(token_file)),)), clock=clock)


@pytest.mark.asyncio
async def test_a_rewritten_file_is_noticed_within_a_minute(token_file: Path, clock: FakeClock) -> None:
    credentials = from_file(token_file, clock)
    before = await credentials.current()
    token_file.write_text("second\n")

    at_once = await credentials.current()
    clock.advance(REREAD_S)

    assert at_once == before
    assert (await credentials.current()).headers == (("Authorization", "Bearer second"),)


@pytest.mark.asyncio
async def test_what_was_refused_is_read_again(token_file: Path, clock: FakeClock) -> None:
    credentials = from_file(token_file, clock)
    refused = await credentials.current()
    token_file.write_text("second\n")

    credentials.forget(refused)

    assert (await credentials.current()).headers == (("Authorization", "Bearer second"),)


@pytest.mark.asyncio
async def test_an_empty_or_missing_file_is_no_credential(token_file: Path, clock: FakeClock) -> None:
    credentials = from_file(token_file, clock)
    token_file.write_text("\n")
    with pytest.raises(CredentialsFailed, match="is empty"):
        await credentials.current()
    token_file.unlink()
    with pytest.raises(CredentialsFailed, match="cannot be read"):
        await credentials.current()


def test_a_token_file_wins_over_a_token(token_file: Path) -> None:
    user = User(token="old", token_file=str(token_file))

    assert read_user(user).headers == (("Authorization", "Bearer first"),)


def test_a_name_and_a_password_are_basic_authentication() -> None:
    expected = base64.b64encode(b"me:secret").decode()

    assert read_user(User(username="me", password="secret")).headers == (("Authorization", f"Basic {expected}"),)


def test_data_wins_over_files_for_certificates() -> None:
    user = User(
        client_certificate_data=base64.b64encode(b"chain").decode(),
        client_certificate="/missing",
        client_key_data=base64.b64encode(b"key").decode(),
    )

    certificate = read_user(user).certificate

    assert certificate is not None
    assert (certificate.chain, certificate.key) == (b"chain", b"key")


@pytest.mark.parametrize(
    ("user", "complaint"),
    [
        (User(client_key_data="a2V5"), "go together"),
        (User(client_certificate_data="%", client_key_data="a2V5"), "client-certificate-data: is not base64"),
    ],
)
def test_half_of_a_certificate_is_refused(user: User, complaint: str) -> None:
    with pytest.raises(InvalidKubeconfig, match=complaint):
        read_user(user)


def test_whom_to_impersonate_is_said_in_every_request() -> None:
    user = User(impersonate="jane", impersonate_groups=("a", "b"), impersonate_extra={"scope": ("x",)})

    assert read_user(user).headers == (
        ("Impersonate-User", "jane"),
        ("Impersonate-Group", "a"),
        ("Impersonate-Group", "b"),
        ("Impersonate-Extra-scope", "x"),
    )


def test_a_credential_does_not_show_its_secrets() -> None:
    assert "secret" not in repr(Credential((bearer("secret"),)))
