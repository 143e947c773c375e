"""What access keeps on disk: the secret that signs, and who has which static token, as hashes."""

import secrets
from collections.abc import Mapping
from pathlib import Path

import msgspec

from tessera.embedded.access.signing import KEY_BYTES
from tessera.embedded.access.users import User
from tessera.errors import InvalidInput
from tessera.files import put_whole

KEY_FILE = "service-account.key"
TOKENS_FILE = "tokens.json"
PRIVATE = 0o600


class _Known(msgspec.Struct, omit_defaults=True):
    name: str
    uid: str = ""
    groups: tuple[str, ...] = ()


def signing_key(directory: Path) -> bytes:
    """The secret of this state directory, made when it is first needed."""
    path = directory / KEY_FILE
    if path.exists():
        key = path.read_bytes()
        if len(key) != KEY_BYTES:
            raise InvalidInput(f"{path}: has {len(key)} bytes, expected {KEY_BYTES}; remove it and every token is void")
        return key
    key = secrets.token_bytes(KEY_BYTES)
    put_whole(path, key, mode=PRIVATE)
    return key


def read_tokens(directory: Path) -> dict[str, User]:
    """By fingerprint; none where there is no file yet."""
    path = directory / TOKENS_FILE
    if not path.exists():
        return {}
    try:
        known = msgspec.json.decode(path.read_bytes(), type=dict[str, _Known])
    except msgspec.MsgspecError as error:
        raise InvalidInput(
            f"{path}: cannot be read as tokens: {error}; remove it and every static token is void"
        ) from None
    return {mark: User(name=one.name, uid=one.uid, groups=one.groups) for mark, one in known.items()}


def write_tokens(directory: Path, tokens: Mapping[str, User]) -> None:
    known = {mark: _Known(user.name, user.uid, user.groups) for mark, user in tokens.items()}
    put_whole(directory / TOKENS_FILE, msgspec.json.format(msgspec.json.encode(known)), mode=PRIVATE)
