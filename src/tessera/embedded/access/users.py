"""Who asks: a name, the groups it belongs to, and what its credential said of it."""

from collections.abc import Mapping
from types import MappingProxyType

import msgspec

from tessera.embedded.documents import Document

MASTERS = "system:masters"
AUTHENTICATED = "system:authenticated"
UNAUTHENTICATED = "system:unauthenticated"
ACCOUNT_PREFIX = "system:serviceaccount:"
ACCOUNTS = "system:serviceaccounts"
_NOTHING: Mapping[str, tuple[str, ...]] = MappingProxyType({})


class User(msgspec.Struct, frozen=True, kw_only=True):
    name: str
    uid: str = ""
    groups: tuple[str, ...] = ()
    extra: Mapping[str, tuple[str, ...]] = _NOTHING

    def told(self) -> Document:
        """As reviews show it, without what is empty."""
        told: Document = {"username": self.name, "uid": self.uid, "groups": list(self.groups)}
        told["extra"] = {key: list(values) for key, values in self.extra.items()}
        return {field: value for field, value in told.items() if value}


ANONYMOUS = User(name="system:anonymous", groups=(UNAUTHENTICATED,))


def account_name(namespace: str, name: str) -> str:
    """What a ServiceAccount is called among users."""
    return f"{ACCOUNT_PREFIX}{namespace}:{name}"


def account_user(namespace: str, name: str, uid: str, extra: Mapping[str, tuple[str, ...]] = _NOTHING) -> User:
    groups = (ACCOUNTS, f"{ACCOUNTS}:{namespace}", AUTHENTICATED)
    return User(name=account_name(namespace, name), uid=uid, groups=groups, extra=extra)
