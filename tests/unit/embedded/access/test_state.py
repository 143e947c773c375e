"""What access keeps on disk."""

import stat

import pytest

from tessera.embedded.access.state import KEY_FILE, TOKENS_FILE, read_tokens, signing_key, write_tokens
from tessera.embedded.access.tokens import fingerprint
from tessera.embedded.access.users import User
from tessera.errors import InvalidInput


def test_the_secret_is_made_once_and_only_its_owner_reads_it(tmp_path):
    key = signing_key(tmp_path)
    assert len(key) == 32
    assert signing_key(tmp_path) == key
    assert stat.S_IMODE((tmp_path / KEY_FILE).stat().st_mode) == 0o600


def test_tokens_are_kept_as_hashes(tmp_path):
    known = {fingerprint("secret"): User(name="root", groups=("system:masters",))}
    write_tokens(tmp_path, known)
    assert read_tokens(tmp_path) == known
    assert "secret" not in (tmp_path / TOKENS_FILE).read_text()


def test_a_directory_without_tokens_has_none(tmp_path):
    assert read_tokens(tmp_path) == {}


@pytest.mark.parametrize(("name", "read"), [(KEY_FILE, signing_key), (TOKENS_FILE, read_tokens)])
def test_a_damaged_file_is_said_in_a_sentence(tmp_path, name, read):
    (tmp_path / name).write_text("{")
    with pytest.raises(InvalidInput, match=name):
        read(tmp_path)
