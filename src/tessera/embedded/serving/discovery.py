"""What there is: groups, their versions and the resources in them, in the old form and in the aggregated one. Pure."""

from collections.abc import Iterable, Sequence

from tessera.embedded.documents import Document
from tessera.embedded.kinds import Kind
from tessera.embedded.resources.table import Subresource, subresources_of

VERSION = "1.36.0"
"""The Kubernetes whose behaviour the contract describes."""


def version_info() -> Document:
    major, minor, _ = VERSION.split(".")
    return {
        "major": major,
        "minor": minor,
        "gitVersion": f"v{VERSION}",
        "gitCommit": "",
        "gitTreeState": "clean",
        "buildDate": "1970-01-01T00:00:00Z",
        "goVersion": "",
        "compiler": "",
        "platform": "linux/amd64",
    }


def core_versions(address: str) -> Document:
    by_client = [{"clientCIDR": "0.0.0.0/0", "serverAddress": address}]
    return {"kind": "APIVersions", "versions": ["v1"], "serverAddressByClientCIDRs": by_client}


def groups(kinds: Iterable[Kind]) -> Document:
    named = [_group(group, versions) for group, versions in _versions(kinds).items() if group]
    return {"kind": "APIGroupList", "apiVersion": "v1", "groups": named}


def group(kinds: Iterable[Kind], name: str) -> Document | None:
    versions = _versions(kinds).get(name)
    return {"kind": "APIGroup", "apiVersion": "v1", **_group(name, versions)} if versions else None


def resources(kinds: Iterable[Kind], group: str, version: str) -> Document | None:
    """All resources of a group and version, each followed by its subresources; None if there are none."""
    found = [kind for kind in kinds if (kind.group, kind.version) == (group, version)]
    if not found:
        return None
    told = [entry for kind in found for entry in _entries(kind)]
    return {"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": found[0].api_version, "resources": told}


def aggregated(kinds: Iterable[Kind], *, core: bool) -> Document:
    """Everything of the core, or of all groups, in one piece."""
    known = list(kinds)
    items = [
        {"metadata": {"name": group} if group else {}, "versions": [_version(known, group, one) for one in versions]}
        for group, versions in _versions(known).items()
        if (group == "") is core
    ]
    return {"kind": "APIGroupDiscoveryList", "apiVersion": "apidiscovery.k8s.io/v2", "metadata": {}, "items": items}


def _versions(kinds: Iterable[Kind]) -> dict[str, list[str]]:
    found = dict[str, list[str]]()
    for kind in kinds:
        versions = found.setdefault(kind.group, [])
        if kind.version not in versions:
            versions.append(kind.version)
    return found


def _group(name: str, versions: Sequence[str]) -> Document:
    told = [{"groupVersion": f"{name}/{version}", "version": version} for version in versions]
    return {"name": name, "versions": told, "preferredVersion": told[0]}


def _entries(kind: Kind) -> list[Document]:
    entry: Document = {
        "name": kind.plural,
        "singularName": kind.singular,
        "namespaced": kind.is_namespaced,
        "kind": kind.kind,
        "verbs": list(kind.verbs),
    }
    if kind.short_names:
        entry["shortNames"] = list(kind.short_names)
    if kind.categories:
        entry["categories"] = list(kind.categories)
    return [entry, *(_door(kind, door) for door in subresources_of(kind))]


def _door(kind: Kind, door: Subresource) -> Document:
    entry: Document = {
        "name": f"{kind.plural}/{door.name}",
        "singularName": "",
        "namespaced": kind.is_namespaced,
        "kind": door.kind,
        "verbs": list(door.verbs),
    }
    return entry | ({"group": door.group, "version": door.version} if door.version else {})


def _version(kinds: Sequence[Kind], group: str, version: str) -> Document:
    found = [kind for kind in kinds if (kind.group, kind.version) == (group, version)]
    return {"version": version, "resources": [_resource(kind) for kind in found], "freshness": "Current"}


def _resource(kind: Kind) -> Document:
    told: Document = {
        "resource": kind.plural,
        "responseKind": {"group": kind.group, "version": kind.version, "kind": kind.kind},
        "scope": "Namespaced" if kind.is_namespaced else "Cluster",
        "singularResource": kind.singular,
        "verbs": list(kind.verbs),
    }
    if kind.short_names:
        told["shortNames"] = list(kind.short_names)
    if kind.categories:
        told["categories"] = list(kind.categories)
    if doors := [_aggregated_door(kind, door) for door in subresources_of(kind)]:
        told["subresources"] = doors
    return told


def _aggregated_door(kind: Kind, door: Subresource) -> Document:
    group, version = (door.group, door.version) if door.version else (kind.group, kind.version)
    shown = {"group": group, "version": version, "kind": door.kind}
    return {"subresource": door.name, "responseKind": shown, "verbs": list(door.verbs)}
