"""Which kinds an API server has: those it says itself, and those that definitions add while we run."""

from typing import TypeVar

import msgspec
import structlog

from tessera.embedded.controllers.conditions import is_true
from tessera.embedded.controllers.objects import Thing
from tessera.embedded.controllers.watching import Resource, resource_of
from tessera.embedded.resources.parts import each, inside
from tessera.errors import KubeError
from tessera.kube.client import Client
from tessera.kube.kinds import Kind
from tessera.kube.objects import Document
from tessera.kube.requests import Request

T = TypeVar("T")
log: structlog.stdlib.BoundLogger = structlog.get_logger(__name__)

NEEDED = frozenset(("delete", "list", "watch"))


class _Resource(msgspec.Struct, frozen=True):
    name: str
    kind: str
    namespaced: bool = False
    verbs: tuple[str, ...] = ()


class _Resources(msgspec.Struct, frozen=True):
    resources: tuple[_Resource, ...] = ()


class _Version(msgspec.Struct, frozen=True, rename="camel"):
    group_version: str


class _Group(msgspec.Struct, frozen=True, rename="camel"):
    versions: tuple[_Version, ...] = ()
    preferred_version: _Version | None = None


class _Groups(msgspec.Struct, frozen=True):
    groups: tuple[_Group, ...] = ()


Kinds = dict[Resource, Kind[Thing]]


async def served_kinds(client: Client) -> Kinds:
    """Whatever can be listed, watched and deleted, each in the version that the server prefers."""
    groups = await _read(client, "/apis", _Groups)
    paths = [("/api/v1", "v1")]
    for group in groups.groups:
        preferred = [group.preferred_version] if group.preferred_version else []
        paths += [(f"/apis/{one.group_version}", one.group_version) for one in [*preferred, *group.versions]]
    found: Kinds = {}
    for path, api_version in dict.fromkeys(paths):
        try:
            listed = await _read(client, path, _Resources)
        except KubeError as error:  # a group whose server is away hides no other
            log.warning("group not read", path=path, error=str(error))
            continue
        for kind in _kinds_in(listed, api_version):
            found.setdefault(resource_of(kind), kind)
    return found


def defined_kind(definition: Document) -> Kind[Thing] | None:
    """What a CustomResourceDefinition adds, once it is in force and for as long as it stays."""
    is_going = "deletionTimestamp" in definition["metadata"]
    if is_going or not is_true(each(inside(definition, "status"), "conditions"), "Established"):
        return None
    return kind_in(definition["spec"])


def kind_in(spec: Document) -> Kind[Thing] | None:
    """What the spec of a definition describes, in a version that is served."""
    served = [version for version in spec["versions"] if version.get("served")]
    if not served:
        return None
    return Kind(
        group=spec["group"],
        version=served[0]["name"],
        plural=spec["names"]["plural"],
        name=spec["names"]["kind"],
        namespaced=spec["scope"] == "Namespaced",
        shape=Thing,
    )


def _kinds_in(listed: _Resources, api_version: str) -> list[Kind[Thing]]:
    group, _, version = api_version.rpartition("/")
    return [
        Kind(group=group, version=version, plural=one.name, name=one.kind, namespaced=one.namespaced, shape=Thing)
        for one in listed.resources
        if "/" not in one.name and set(one.verbs) >= NEEDED
    ]


async def _read(client: Client, path: str, shape: type[T]) -> T:
    return msgspec.json.decode(await client.send(Request(verb="get", path=path, target=path)), type=shape)
