"""Writes down which field of Kubernetes' own types has which number in protobuf, from the Go modules of the testbed.

kubectl and programs in Go send built-in kinds in protobuf, where a field has a number and no name. The numbers never
change and are added to once for each version of Kubernetes, so this is run by hand and the result is kept:

    python build_field_numbers.py ~/go/pkg/mod/k8s.io 0.36.3

A `.proto` file says the type of each field, the tags of the Go struct what JSON calls it, whether it is a part of the
type around it, and whether zero means that it is absent.
"""

import json
import re
import sys
from pathlib import Path
from typing import NamedTuple

GENERATED = Path("src/tessera/embedded/serving/protobuf/field_numbers.json")
DELETE_OPTIONS = "apis.meta.v1.DeleteOptions"
GROUPS = (
    "apps",
    "authentication",
    "authorization",
    "autoscaling",
    "batch",
    "coordination",
    "core",
    "discovery",
    "events",
    "networking",
    "node",
    "policy",
    "rbac",
    "scheduling",
)
OTHERS = ("pkg/apis/meta/v1", "pkg/runtime", "pkg/util/intstr", "pkg/api/resource")
KINDS = (
    *(f"apps.v1.{kind}" for kind in ("DaemonSet", "Deployment", "ReplicaSet", "StatefulSet")),
    *(f"authentication.v1.{kind}" for kind in ("SelfSubjectReview", "TokenRequest", "TokenReview")),
    "authorization.v1.LocalSubjectAccessReview",
    "authorization.v1.SelfSubjectAccessReview",
    "authorization.v1.SelfSubjectRulesReview",
    "authorization.v1.SubjectAccessReview",
    *(f"core.v1.{kind}" for kind in ("Binding", "ConfigMap", "Endpoints", "Event", "Namespace", "Node")),
    *(f"core.v1.{kind}" for kind in ("PersistentVolumeClaim", "Pod", "ResourceQuota", "Secret", "Service")),
    *("autoscaling.v1.Scale", "batch.v1.Job", "coordination.v1.Lease", "events.v1.Event"),
    *(f"rbac.v1.{kind}" for kind in ("ClusterRole", "ClusterRoleBinding", "Role", "RoleBinding")),
    *("core.v1.ServiceAccount", "discovery.v1.EndpointSlice", "networking.v1.NetworkPolicy"),
    *("node.v1.RuntimeClass", "policy.v1.Eviction", "policy.v1.PodDisruptionBudget", "scheduling.v1.PriorityClass"),
)

_MESSAGE = re.compile(r"^message (\w+) \{\n(.*?)^\}", re.MULTILINE | re.DOTALL)
_FIELD = re.compile(r"^  (?:(optional|repeated) )?(map<string, ?([\w.]+)>|[\w.]+) (\w+) = (\d+);", re.MULTILINE)
_STRUCT = re.compile(r"^type (\w+) struct \{\n(.*?)^\}", re.MULTILINE | re.DOTALL)
_TAG = re.compile(r'^\t(?:\w+ +)?(\S+)\s+`json:"([^"]*)"\s+protobuf:"\w+,(\d+),', re.MULTILINE)
_PLAIN = {"string", "bool", "bytes", "double", "int32", "int64"}


class Tag(NamedTuple):
    """`name` is empty where the field is a part of the type around it."""

    name: str
    is_absent_when_zero: bool


def main(modules: Path, version: str) -> None:
    types = dict[str, dict[str, list[str]]]()
    for directory in _directories(modules, version):
        types |= _types_of(directory)
    wanted = [*KINDS, DELETE_OPTIONS]
    kept = dict[str, dict[str, list[str]]]()
    while wanted:
        name = wanted.pop()
        if name not in kept:
            kept[name] = types[name]
            wanted += [field[1] for field in types[name].values() if field[1] not in _PLAIN]
    lines = [f"{json.dumps(name)}:{json.dumps(kept[name], separators=(',', ':'))}" for name in sorted(kept)]
    GENERATED.write_text("{\n" + ",\n".join(lines) + "\n}\n")


def _directories(modules: Path, version: str) -> list[Path]:
    groups = [modules / f"api@v{version}" / group / "v1" for group in GROUPS]
    return groups + [modules / f"apimachinery@v{version}" / other for other in OTHERS]


def _types_of(directory: Path) -> dict[str, dict[str, list[str]]]:
    """By number: what JSON calls it, its type, one, many or map, and whether zero is told."""
    text = (directory / "generated.proto").read_text()
    package = re.search(r"^package ([\w.]+);", text, re.MULTILINE)
    assert package, f"{directory}: no package"
    tags = _tags_of(directory)
    return {
        _short(f"{package[1]}.{name}"): {
            match[5]: _field(match, package[1], tags.get((name, match[5]))) for match in _FIELD.finditer(body)
        }
        for name, body in _MESSAGE.findall(text)
    }


def _field(match: re.Match[str], package: str, tag: Tag | None) -> list[str]:
    kind = match[3] or match[2]
    full = kind if kind in _PLAIN else _short(kind.removeprefix(".") if "." in kind else f"{package}.{kind}")
    shape = "map" if match[3] else "many" if match[1] == "repeated" else "one"
    name, drops_zero = tag or Tag(match[4], False)
    return [name, full, shape, *(["drop"] if drops_zero else [])]


def _short(name: str) -> str:
    """`core.v1.Pod`, `apis.meta.v1.Time`."""
    return name.removeprefix("k8s.io.api.").removeprefix("k8s.io.apimachinery.pkg.")


def _tags_of(directory: Path) -> dict[tuple[str, str], Tag]:
    tags = dict[tuple[str, str], Tag]()
    for source in directory.glob("*.go"):
        for struct, body in _STRUCT.findall(source.read_text()):
            for kind, told, number in _TAG.findall(body):
                name, *more = told.split(",")
                is_pointer = kind.startswith(("*", "[", "map"))
                tags[struct, number] = Tag(name, "omitempty" in more and not is_pointer)
    return tags


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2])
