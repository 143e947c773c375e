"""A schema as owning sees one, read from OpenAPI; one that has a field of every shape; and objects of it."""

from collections.abc import Mapping
from typing import Any, Literal, cast

from tessera.embedded.ownership import Write

NOW = "2026-01-01T00:00:00Z"
LATER = "2026-01-01T00:00:09Z"


class DrawnSchema:
    def __init__(self, raw: Mapping[str, Any]) -> None:
        self.raw = raw

    @property
    def map_type(self) -> Literal["atomic", "granular"]:
        return cast(Literal["atomic", "granular"], self.raw.get("x-kubernetes-map-type", "granular"))

    @property
    def list_type(self) -> Literal["atomic", "map", "set"]:
        return cast(Literal["atomic", "map", "set"], self.raw.get("x-kubernetes-list-type", "atomic"))

    @property
    def list_keys(self) -> tuple[str, ...]:
        return tuple(self.raw.get("x-kubernetes-list-map-keys", ()))

    def child(self, step: str | int) -> "DrawnSchema | None":
        if isinstance(step, int):
            raw = self.raw.get("items")
        else:
            raw = self.raw.get("properties", {}).get(step, self.raw.get("additionalProperties"))
        return DrawnSchema(raw) if raw is not None else None


def an_object(**properties: Mapping[str, Any]) -> dict[str, Any]:
    return {"type": "object", "properties": properties}


def a_list_by(keys: list[str], items: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "type": "array",
        "x-kubernetes-list-type": "map",
        "x-kubernetes-list-map-keys": keys,
        "items": {**items, "required": keys[:1]},
    }


TEXT = {"type": "string"}
NUMBER = {"type": "integer"}
TEXTS = {"type": "object", "additionalProperties": TEXT}
A_SET = {"type": "array", "x-kubernetes-list-type": "set", "items": TEXT}
PORT = an_object(port=NUMBER, protocol={"type": "string", "default": "TCP"}, host=TEXT)
CONTAINER = an_object(
    name=TEXT,
    image=TEXT,
    env=a_list_by(["name"], an_object(name=TEXT, value=TEXT)),
    ports=a_list_by(["port", "protocol"], PORT),
)
SPEC = an_object(
    replicas=NUMBER,
    selector=TEXTS | {"x-kubernetes-map-type": "atomic"},
    strategy=an_object(type=TEXT, surge=NUMBER),
    containers=a_list_by(["name"], CONTAINER),
    args={"type": "array", "items": TEXT},
    tags=A_SET,
    pools={"type": "object", "additionalProperties": an_object(size=NUMBER, zone=TEXT)},
    anything={"type": "object", "x-kubernetes-preserve-unknown-fields": True},
)
METADATA = an_object(name=TEXT, labels=TEXTS, annotations=TEXTS, finalizers=A_SET)
STATUS = an_object(phase=TEXT)
RAW = an_object(apiVersion=TEXT, kind=TEXT, metadata=METADATA, data=TEXTS, spec=SPEC, status=STATUS)
SCHEMA = DrawnSchema(RAW)


def thing(metadata: Mapping[str, Any] | None = None, **fields: Any) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "Thing", "metadata": {"name": "it"} | dict(metadata or {})} | fields


def by(manager: str, now: str = NOW, subresource: str = "") -> Write:
    return Write(manager, "v1", now, subresource)


def owned_by(document: Mapping[str, Any], manager: str, operation: str = "Apply") -> dict[str, Any] | None:
    for entry in document["metadata"].get("managedFields", ()):
        if (entry["manager"], entry["operation"]) == (manager, operation):
            return entry["fieldsV1"]
    return None
