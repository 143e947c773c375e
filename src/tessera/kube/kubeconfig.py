"""Kubeconfig files, read and merged as kubectl does it.

The first file that names a cluster, user or context wins it whole, and the first current-context counts. A relative
path is relative to the file that holds it. Unknown fields are left alone: other programs keep theirs here too.
"""

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Annotated, Any, TypeVar

import msgspec
import yaml

from tessera.errors import InvalidKubeconfig
from tessera.model.mismatches import explain_mismatch

NameT = TypeVar("NameT")
PartT = TypeVar("PartT", bound="_Part")
EXEC_EXTENSION = "client.authentication.k8s.io/exec"


class _Part(msgspec.Struct, frozen=True, kw_only=True, rename="kebab"):
    pass


class Extension(_Part, frozen=True, kw_only=True):
    name: str
    extension: Any = None


class Cluster(_Part, frozen=True, kw_only=True):
    server: str = ""
    certificate_authority: str | None = None
    certificate_authority_data: str | None = None
    insecure_skip_tls_verify: bool = False
    tls_server_name: str | None = None
    proxy_url: str | None = None
    extensions: tuple[Extension, ...] | None = None


class EnvironmentVariable(_Part, frozen=True, kw_only=True):
    name: str
    value: str


class Exec(_Part, frozen=True, kw_only=True, rename="camel"):
    api_version: str
    command: Annotated[str, msgspec.Meta(min_length=1)]
    args: tuple[str, ...] | None = None
    env: tuple[EnvironmentVariable, ...] | None = None
    install_hint: str = ""
    interactive_mode: str = ""
    provide_cluster_info: bool = False


class User(_Part, frozen=True, kw_only=True):
    client_certificate: str | None = None
    client_certificate_data: str | None = None
    client_key: str | None = None
    client_key_data: str | None = None
    token: str | None = None
    token_file: str | None = msgspec.field(default=None, name="tokenFile")
    username: str | None = None
    password: str | None = None
    exec: Exec | None = None
    auth_provider: Any = None
    impersonate: str | None = msgspec.field(default=None, name="as")
    impersonate_uid: str | None = msgspec.field(default=None, name="as-uid")
    impersonate_groups: tuple[str, ...] | None = msgspec.field(default=None, name="as-groups")
    impersonate_extra: dict[str, tuple[str, ...]] | None = msgspec.field(default=None, name="as-user-extra")


class Context(_Part, frozen=True, kw_only=True):
    cluster: str = ""
    user: str = ""
    namespace: str | None = None


class NamedCluster(_Part, frozen=True, kw_only=True):
    name: str
    cluster: Cluster


class NamedUser(_Part, frozen=True, kw_only=True):
    name: str
    user: User | None = None


class NamedContext(_Part, frozen=True, kw_only=True):
    name: str
    context: Context


class _File(_Part, frozen=True, kw_only=True):
    current_context: str | None = None
    clusters: tuple[NamedCluster, ...] | None = None
    users: tuple[NamedUser, ...] | None = None
    contexts: tuple[NamedContext, ...] | None = None


class Kubeconfig(msgspec.Struct, frozen=True, kw_only=True):
    """One file, or several merged. `where` names them for sentences."""

    where: str
    current_context: str = ""
    clusters: Mapping[str, Cluster] = {}
    users: Mapping[str, User] = {}
    contexts: Mapping[str, Context] = {}

    def choose(self, context: str | None = None) -> tuple[Context, Cluster, User]:
        """What the named context leads to, or the current one."""
        name = context or self.current_context
        if not name:
            raise InvalidKubeconfig(f"{self.where}: current-context is empty, expected one; name a context")
        chosen = self._find(self.contexts, "context", name)
        cluster = self._find(self.clusters, "cluster", chosen.cluster)
        user = self._find(self.users, "user", chosen.user) if chosen.user else User()
        if not cluster.server:
            raise InvalidKubeconfig(f'{self.where}: cluster "{chosen.cluster}" has no server, expected its URL')
        return chosen, cluster, user

    def _find(self, named: Mapping[str, NameT], what: str, name: str) -> NameT:
        if name not in named:
            known = ", ".join(named) or "none"
            raise InvalidKubeconfig(f'{self.where}: {what} "{name}" is not there, expected one of: {known}')
        return named[name]


def load_kubeconfig(paths: Iterable[Path]) -> Kubeconfig:
    return merge([parse_kubeconfig(_read_text(path), path) for path in paths])


def parse_kubeconfig(text: str, path: Path) -> Kubeconfig:
    """One file's text. `path` is where it lies: relative paths in it start from there."""
    file = _parse_file(text, path)
    folder = path.parent
    clusters = [(named.name, _resolve_cluster(named.cluster, folder)) for named in file.clusters or ()]
    users = [(named.name, _resolve_user(named.user or User(), folder)) for named in file.users or ()]
    return Kubeconfig(
        where=str(path),
        current_context=file.current_context or "",
        clusters=_by_name(clusters, f"{path}: cluster"),
        users=_by_name(users, f"{path}: user"),
        contexts=_by_name([(named.name, named.context) for named in file.contexts or ()], f"{path}: context"),
    )


def merge(configs: list[Kubeconfig]) -> Kubeconfig:
    """The earlier config wins, name by name and whole."""
    reversed_configs = configs[::-1]
    return Kubeconfig(
        where=", ".join(config.where for config in configs) or "no kubeconfig",
        current_context=next((config.current_context for config in configs if config.current_context), ""),
        clusters={name: it for config in reversed_configs for name, it in config.clusters.items()},
        users={name: it for config in reversed_configs for name, it in config.users.items()},
        contexts={name: it for config in reversed_configs for name, it in config.contexts.items()},
    )


def _read_text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise InvalidKubeconfig(f"{path}: cannot be read ({error}), expected a kubeconfig") from None


def _parse_file(text: str, path: Path) -> _File:
    try:
        document: object = yaml.safe_load(text)
    except yaml.YAMLError as error:
        raise InvalidKubeconfig(f"{path}: is not YAML, expected a kubeconfig: {error}") from None
    try:
        return msgspec.convert({} if document is None else document, _File)
    except msgspec.ValidationError as error:
        raise InvalidKubeconfig(f"{path}: {explain_mismatch(error, document)}") from None


def _by_name(entries: list[tuple[str, NameT]], what: str) -> dict[str, NameT]:
    named: dict[str, NameT] = {}
    for name, entry in entries:
        if name in named:
            raise InvalidKubeconfig(f'{what} "{name}" is there twice, expected each name once; remove one')
        named[name] = entry
    return named


def _resolve_cluster(cluster: Cluster, folder: Path) -> Cluster:
    return _resolve(cluster, folder, ("certificate_authority",))


def _resolve_user(user: User, folder: Path) -> User:
    user = _resolve(user, folder, ("client_certificate", "client_key", "token_file"))
    if user.exec is None or "/" not in user.exec.command:
        return user
    return msgspec.structs.replace(user, exec=_resolve(user.exec, folder, ("command",)))


def _resolve(part: PartT, folder: Path, fields: tuple[str, ...]) -> PartT:
    paths = {field: str(folder / path) for field in fields if (path := getattr(part, field))}
    return msgspec.structs.replace(part, **paths)
