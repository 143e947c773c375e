"""Acting as somebody else, as `kubectl --as` asks: who that would be, and what one must be allowed for it."""

from collections.abc import Iterable, Sequence
from typing import NamedTuple
from urllib.parse import unquote

from tessera.embedded.access import ANONYMOUS, User
from tessera.embedded.access.users import ACCOUNT_PREFIX, AUTHENTICATED, UNAUTHENTICATED, account_user
from tessera.embedded.refusals import bad_request
from tessera.embedded.serving.paths import Target

VERB = "impersonate"
_PREFIX = b"impersonate-"
_EXTRA = "extra-"
_OF_USERS = "authentication.k8s.io"


class Impersonation(NamedTuple):
    """Whom the request is to come from; `needs` are what `impersonate` must be granted on."""

    user: User
    needs: Sequence[Target]


def read_impersonation(headers: Iterable[tuple[bytes, bytes]]) -> Impersonation | None:
    """None, if one acts as oneself."""
    said: dict[str, list[str]] = {}
    for name, value in headers:
        if name.startswith(_PREFIX):
            said.setdefault(name.removeprefix(_PREFIX).decode("latin-1"), []).append(value.decode("latin-1"))
    if not said:
        return None
    name, uid, groups = said.get("user", [""])[0], said.get("uid", [""])[0], said.get("group", [])
    if not name:
        raise bad_request(f"Impersonate-{next(iter(said)).title()} is given, expected Impersonate-User beside it")
    extra = {unquote(key.removeprefix(_EXTRA)): tuple(said[key]) for key in said if key.startswith(_EXTRA)}
    needs = [_of_name(name), *(Target("", "v1", "groups", name=group) for group in groups)]
    needs += [Target(_OF_USERS, "v1", "uids", name=uid)] if uid else []
    needs += [
        Target(_OF_USERS, "v1", "userextras", name=value, subresource=key) for key in extra for value in extra[key]
    ]
    return Impersonation(User(name=name, uid=uid, groups=_groups(name, groups), extra=extra), needs)


def _of_name(name: str) -> Target:
    namespace, account = _account(name)
    if account:
        return Target("", "v1", "serviceaccounts", namespace, account)
    return Target("", "v1", "users", name=name)


def _groups(name: str, said: Sequence[str]) -> tuple[str, ...]:
    """Those that are said; else those that an account has. Everybody but nobody in particular is authenticated."""
    if name == ANONYMOUS.name:
        return (*said, *({UNAUTHENTICATED} - set(said)))
    namespace, account = _account(name)
    groups = tuple(said) or (account_user(namespace, account, "").groups if account else ())
    return groups if {AUTHENTICATED, UNAUTHENTICATED} & set(groups) else (*groups, AUTHENTICATED)


def _account(name: str) -> tuple[str, str]:
    """Namespace and name of a ServiceAccount; empty for anybody else."""
    namespace, _, account = name.removeprefix(ACCOUNT_PREFIX).partition(":")
    return (namespace, account) if name.startswith(ACCOUNT_PREFIX) else ("", "")
