"""The types of Kubernetes' own kinds, as build_schemas.py has written them down from the official client's models.

The file is read once, in a few milliseconds; a type is decoded when somebody asks for it. Descriptions are of use to
`kubectl explain` alone and are kept apart.
"""

from functools import cache
from importlib.resources import files

import msgspec

from tessera.embedded.documents import Document, Frozen

OBJECT_META = "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta"
JSON_SCHEMA_PROPS = "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.JSONSchemaProps"
_REFERENCE = "#/components/schemas/"


class _Written(msgspec.Struct):
    """`texts` has the description of each type under the empty name, and of its fields under theirs."""

    kinds: dict[str, str]
    types: dict[str, msgspec.Raw]
    texts: dict[str, msgspec.Raw]


@cache
def _written() -> _Written:
    generated = files("tessera.embedded.schemas") / "kubernetes.json"
    return msgspec.json.decode(generated.read_bytes(), type=_Written)


def type_name_of(api_version: str, kind: str) -> str | None:
    return _written().kinds.get(f"{api_version} {kind}")


@cache
def type_named(name: str) -> Frozen:
    return msgspec.json.decode(_written().types[name], type=Document)


def texts_of(name: str) -> dict[str, str]:
    return msgspec.json.decode(_written().texts[name], type=dict[str, str])


def reference_to(name: str) -> Document:
    return {"$ref": f"{_REFERENCE}{name}"}


def referred_by(raw: Frozen) -> str | None:
    """The type that stands for a schema, if it is one by name. The fields of a type may have one called `$ref` too."""
    reference = raw.get("$ref")
    return reference.removeprefix(_REFERENCE) if isinstance(reference, str) else None
