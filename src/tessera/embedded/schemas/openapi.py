"""The OpenAPI v3 document of one group and version: what `kubectl explain`, `apply` and validation read.

Schemas come with their descriptions and all they refer to. Paths say only which kind is behind a resource, that its
writes can be validated, and which patches it takes: clients look for nothing else.
"""

from collections.abc import Iterable, Iterator
from typing import Any, cast

from tessera.embedded.documents import Document, Frozen
from tessera.embedded.kinds import Kind
from tessera.embedded.schemas.builtin import OBJECT_META, reference_to, referred_by, texts_of, type_named
from tessera.embedded.schemas.schema import Schema

_BUILTIN_PATCHES = ("json-patch+json", "merge-patch+json", "strategic-merge-patch+json", "apply-patch+yaml")
_CUSTOM_PATCHES = ("json-patch+json", "merge-patch+json", "apply-patch+yaml")
_METHODS = {"get": "get", "put": "update", "patch": "patch", "delete": "delete"}
_COLLECTION_METHODS = {"get": "list", "post": "create", "delete": "deletecollection"}
_QUERY = ("dryRun", "fieldManager", "fieldValidation", "force")


def openapi_of(group: str, version: str, kinds: Iterable[tuple[Kind, Schema]]) -> Document:
    schemas: Document = {}
    paths: Document = {}
    for kind, schema in kinds:
        name = schema.name or ".".join([*reversed(group.split(".")), version, kind.kind])
        own = _custom(schema, kind) if schema.is_custom else _described(name)
        schemas[name] = own
        for referred in _closure(own, schemas):
            schemas[referred] = _described(referred)
        paths |= _paths(kind, name, _CUSTOM_PATCHES if schema.is_custom else _BUILTIN_PATCHES)
    return {
        "openapi": "3.0.0",
        "info": {"title": "Kubernetes", "version": version},
        "paths": paths,
        "components": {"schemas": dict(sorted(schemas.items()))},
    }


def _custom(schema: Schema, kind: Kind) -> Document:
    """As its definition says it; the fields that every object has are described as for built-in kinds."""
    meta = texts_of("io.k8s.api.core.v1.Pod")
    fields: Document = dict(schema.raw["properties"])
    fields |= {name: fields[name] | {"description": meta[name]} for name in ("apiVersion", "kind")}
    fields["metadata"] = _wrapped(reference_to(OBJECT_META), "Standard object's metadata.")
    identity = {"group": kind.group, "version": kind.version, "kind": kind.kind}
    return {**schema.raw, "properties": fields, "x-kubernetes-group-version-kind": [identity]}


def _described(name: str) -> Document:
    raw, texts = type_named(name), texts_of(name)
    fields: dict[str, Document] = raw.get("properties", {})
    described = {field: _wrapped(part, texts.get(field) or _text_of(part)) for field, part in fields.items()}
    text = {"description": texts[""]} if "" in texts else {}
    return {**raw, "properties": described, **text}


def _text_of(raw: Frozen) -> str:
    """What a type says about itself, for a field that says nothing."""
    name = referred_by(raw)
    return texts_of(name).get("", "") if name else ""


def _wrapped(raw: Document, text: str) -> Document:
    """Nothing may stand beside a reference in OpenAPI v3, so it is put into an `allOf` of one."""
    beside = {"description": text} if text else {}
    if "$ref" not in raw:
        return raw | beside
    beside |= {key: value for key, value in raw.items() if key != "$ref"}
    return {"allOf": [{"$ref": raw["$ref"]}], **beside} if beside else raw


def _closure(schema: Document, known: Document) -> Iterator[str]:
    """The types that a schema refers to, and those refer to, without the known ones."""
    seen: set[str] = set(known)
    waiting: list[Any] = [schema]
    while waiting:
        part = waiting.pop()
        if isinstance(part, list):
            waiting += cast("list[Any]", part)
        elif isinstance(part, dict):
            name = referred_by(cast("Frozen", part))
            waiting += cast("Document", part).values()
            if name is not None and name not in seen:
                seen.add(name)
                waiting.append(type_named(name))
                yield name


def _paths(kind: Kind, schema: str, patches: tuple[str, ...]) -> Document:
    root = f"/apis/{kind.group}/{kind.version}" if kind.group else f"/api/{kind.version}"
    place = f"{root}/namespaces/{{namespace}}/{kind.plural}" if kind.is_namespaced else f"{root}/{kind.plural}"
    one = _operations(kind, schema, patches, _METHODS)
    return {place: _operations(kind, schema, patches, _COLLECTION_METHODS), f"{place}/{{name}}": one}


def _operations(kind: Kind, schema: str, patches: tuple[str, ...], methods: dict[str, str]) -> Document:
    identity = {"group": kind.group, "version": kind.version, "kind": kind.kind}
    answer = {"application/json": {"schema": reference_to(schema)}}
    operations: Document = {}
    for method, verb in methods.items():
        if verb not in kind.verbs:
            continue
        operation: Document = {"responses": {"200": {"description": "OK", "content": answer}}}
        operation |= {"x-kubernetes-action": verb, "x-kubernetes-group-version-kind": identity}
        if method in ("post", "put", "patch"):
            operation["parameters"] = [{"name": name, "in": "query", "schema": {"type": "string"}} for name in _QUERY]
        if method == "patch":
            operation["requestBody"] = {
                "content": {f"application/{patch}": {"schema": {"type": "object"}} for patch in patches}
            }
        operations[method] = operation
    return operations
