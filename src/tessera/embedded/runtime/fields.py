"""What a container may ask about its own pod: `fieldRef` and `resourceFieldRef`, in variables and in files."""

import json
import re
from collections.abc import Callable, Mapping

import msgspec

from tessera.embedded.documents import Frozen
from tessera.errors import StartRefused
from tessera.model.quantities import bytes_of, milli_of, parse_quantity

_SUBSCRIPT = re.compile(r"(metadata\.(?:labels|annotations))\['([^']*)'\]")


class Place(msgspec.Struct, frozen=True, kw_only=True):
    """Where a pod runs. `cpu_milli` and `memory_bytes` are the node's, what a container without limits may use."""

    node: str
    host_address: str
    pod_address: str
    cpu_milli: int = 1000
    memory_bytes: int = 1 << 30


def field_value(pod: Frozen, place: Place, path: str) -> str:
    """StartRefused, if the path is none that Kubernetes offers."""
    metadata: Frozen = pod["metadata"]
    if match := _SUBSCRIPT.fullmatch(path):
        held: Mapping[str, str] = metadata.get(match[1].partition(".")[2]) or {}
        return held.get(match[2], "")
    plain: Mapping[str, Callable[[], str]] = {
        "metadata.name": lambda: metadata["name"],
        "metadata.namespace": lambda: metadata["namespace"],
        "metadata.uid": lambda: metadata["uid"],
        "metadata.labels": lambda: _listed(metadata.get("labels")),
        "metadata.annotations": lambda: _listed(metadata.get("annotations")),
        "spec.nodeName": lambda: place.node,
        "spec.serviceAccountName": lambda: pod["spec"].get("serviceAccountName", "default"),
        "status.hostIP": lambda: place.host_address,
        "status.hostIPs": lambda: place.host_address,
        "status.podIP": lambda: place.pod_address,
        "status.podIPs": lambda: place.pod_address,
    }
    if path not in plain:
        raise StartRefused(f'fieldRef is "{path}", expected one of {", ".join(plain)}')
    return plain[path]()


def resource_value(container: Frozen, place: Place, resource: str, divisor: str) -> str:
    """A limit or request of the container, in units of the divisor, rounded up."""
    kind, _, name = resource.partition(".")
    resources: Frozen = container.get("resources") or {}
    held: Mapping[str, str] = resources.get(kind) or {}
    unit = parse_quantity(divisor) if divisor not in ("", "0") else parse_quantity("1")
    if name == "cpu":
        milli = milli_of(held[name]) if name in held else place.cpu_milli if kind == "limits" else 0
        return str(-(-milli // (unit * 1000)))
    amount = bytes_of(held[name]) if name in held else place.memory_bytes if resource == "limits.memory" else 0
    return str(-(-amount // unit))


def _listed(words: Mapping[str, str] | None) -> str:
    """As the downward API writes labels: a line for each, its value quoted."""
    return "\n".join(f"{key}={json.dumps(value, ensure_ascii=False)}" for key, value in sorted((words or {}).items()))
