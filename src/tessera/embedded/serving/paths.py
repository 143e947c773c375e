"""What a request is about, read from its method and its path alone."""

from typing import NamedTuple
from urllib.parse import unquote

_NAMESPACE_DOORS = frozenset({"status", "finalize"})
"""What follows the name of a namespace and is not a resource in it."""

_ONE = {"GET": "get", "PUT": "update", "PATCH": "patch", "DELETE": "delete", "POST": "create", "HEAD": "get"}
_MANY = {"GET": "list", "POST": "create", "DELETE": "deletecollection", "HEAD": "list"}


class Target(NamedTuple):
    """One object or a collection of them. `rest` is what a proxy passes on, with its leading slash."""

    group: str
    version: str
    plural: str
    namespace: str = ""
    name: str = ""
    subresource: str = ""
    rest: str = ""


def read_target(path: str) -> Target | None:
    """None, if the path names no resource: discovery, health, and what nobody has."""
    parts = path.split("/")
    if len(parts) >= 4 and parts[1] == "api":
        group, version, below = "", parts[2], parts[3:]
    elif len(parts) >= 5 and parts[1] == "apis":
        group, version, below = parts[2], parts[3], parts[4:]
    else:
        return None
    if below[-1] == "":
        below = below[:-1] if len(below) < 4 else below  # a proxied path keeps its last slash
    return _below(group, version, [unquote(part) for part in below]) if below else None


def _below(group: str, version: str, parts: list[str]) -> Target:
    if parts[0] == "namespaces" and len(parts) > 2 and parts[2] not in _NAMESPACE_DOORS:
        return _in_namespace(group, version, parts[1], parts[2:])
    return _in_namespace(group, version, "", parts)


def _in_namespace(group: str, version: str, namespace: str, parts: list[str]) -> Target:
    plural, name, subresource = (*parts[:3], "", "")[:3]
    rest = "".join(f"/{part}" for part in parts[3:])
    return Target(group, version, plural, namespace, name, subresource, rest)


def verb_of(method: str, target: Target, *, watches: bool) -> str | None:
    """As roles name it; None, if no resource has this method. A namespace object is in the namespace that it is."""
    if watches and method == "GET" and not target.subresource:
        return "watch"
    return _ONE.get(method) if target.name else _MANY.get(method)
