"""The variables of a container, worked out as the kubelet does it. Pure: what must be fetched is asked for first."""

import base64
import re
from collections.abc import Iterator, Mapping
from typing import NamedTuple

from tessera.embedded.documents import Frozen
from tessera.embedded.runtime.fields import Place, field_value, resource_value
from tessera.embedded.runtime.parts import part
from tessera.errors import StartRefused

PASSED_ON = ("HOME", "LANG", "LC_ALL", "PATH", "TZ", "USER")
"""Of this machine's own variables: what makes its programs work, and none of its secrets."""

_REFERENCE = re.compile(r"\$(?:\$|\(([^)]*)\))")


class Reference(NamedTuple):
    """Something that a container needs. `kind` is `configmap` or `secret`."""

    kind: str
    name: str
    optional: bool


Known = Mapping[tuple[str, str], Frozen | None]
"""What was found under each kind and name."""


def references_of(container: Frozen) -> Iterator[Reference]:
    for source in container.get("envFrom", ()):
        for field, kind in (("configMapRef", "configmap"), ("secretRef", "secret")):
            if named := source.get(field):
                yield Reference(kind, named["name"], named.get("optional", False))
    for variable in container.get("env", ()):
        for field, kind in (("configMapKeyRef", "configmap"), ("secretKeyRef", "secret")):
            if named := part(variable, "valueFrom", field):
                yield Reference(kind, named["name"], named.get("optional", False))


def container_environment(
    pod: Frozen, container: Frozen, place: Place, known: Known, base: Mapping[str, str]
) -> dict[str, str]:
    """`base` is what every container has: variables of the machine and of the API server.

    StartRefused, if it needs something that is not there.
    """
    variables = dict(base)
    for source in container.get("envFrom", ()):
        variables |= _whole(source, known)
    for variable in container.get("env", ()):
        name = variable["name"]
        if "valueFrom" not in variable:
            variables[name] = expand(variable.get("value", ""), variables)
            continue
        value = _one(variable["valueFrom"], pod, container, place, known)
        if value is not None:
            variables[name] = value
    return variables


def expand(text: str, variables: Mapping[str, str]) -> str:
    """`$(NAME)` is the variable's value, if there is one, and stays as it is if not; `$$` is a dollar sign."""

    def replaced(match: re.Match[str]) -> str:
        if match[1] is None:
            return "$"
        return variables.get(match[1], match[0])

    return _REFERENCE.sub(replaced, text)


def data_of(document: Frozen, kind: str) -> dict[str, bytes]:
    """What a ConfigMap or Secret holds, as bytes."""
    data: Mapping[str, str] = document.get("data") or {}
    if kind == "secret":
        return {key: base64.b64decode(value) for key, value in data.items()}
    binary: Mapping[str, str] = document.get("binaryData") or {}
    return {key: value.encode() for key, value in data.items()} | {
        key: base64.b64decode(value) for key, value in binary.items()
    }


def _whole(source: Frozen, known: Known) -> dict[str, str]:
    for field, kind in (("configMapRef", "configmap"), ("secretRef", "secret")):
        if named := source.get(field):
            document = known.get((kind, named["name"]))
            if document is None:
                if named.get("optional"):
                    return {}
                raise StartRefused(f'{kind} "{named["name"]}" not found')
            prefix, data = source.get("prefix", ""), data_of(document, kind)
            texts: Frozen = document.get("data") or {}  # what else is in a ConfigMap is no text
            return {prefix + key: data[key].decode(errors="replace") for key in texts}
    return {}


def _one(source: Frozen, pod: Frozen, container: Frozen, place: Place, known: Known) -> str | None:
    """None for what is optional and not there."""
    if asked := source.get("fieldRef"):
        return field_value(pod, place, asked["fieldPath"])
    if asked := source.get("resourceFieldRef"):
        return resource_value(container, place, asked["resource"], str(asked.get("divisor", "")))
    for field, kind in (("configMapKeyRef", "configmap"), ("secretKeyRef", "secret")):
        if asked := source.get(field):
            return _key(asked, kind, pod, known)
    raise StartRefused(f"valueFrom is {', '.join(source) or 'empty'}, expected a field, resource, ConfigMap or Secret")


def _key(asked: Frozen, kind: str, pod: Frozen, known: Known) -> str | None:
    document = known.get((kind, asked["name"]))
    data = data_of(document, kind) if document is not None else {}
    if asked["key"] in data:
        return data[asked["key"]].decode(errors="replace")
    if asked.get("optional"):
        return None
    if document is None:
        raise StartRefused(f'{kind} "{asked["name"]}" not found')
    title = "ConfigMap" if kind == "configmap" else "Secret"
    raise StartRefused(f"couldn't find key {asked['key']} in {title} {pod['metadata']['namespace']}/{asked['name']}")
