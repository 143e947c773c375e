"""Generates the schemas of Kubernetes' own kinds from the models of the official Python client.

The models are read, not imported: a build needs the client's files and none of what they depend on. What they do not
say, such as merge keys, stands in marks.toml beside the result. A type is named after the first group that needs it.
"""

import ast
import json
import re
import tomllib
from collections.abc import Iterator
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple

SCHEMAS = Path("src/tessera/embedded/schemas")
MARKS = SCHEMAS / "marks.toml"
GENERATED = SCHEMAS / "kubernetes.json"

Schema = dict[str, Any]
PLAIN: dict[str, Schema] = {
    "str": {"type": "string"},
    "int": {"type": "integer"},
    "float": {"type": "number"},
    "bool": {"type": "boolean"},
    "bytes": {"type": "string", "format": "byte"},
    "datetime": {"type": "string", "format": "date-time"},
    "object": {"x-kubernetes-preserve-unknown-fields": True},
}
INT_OR_STRING: Schema = {"x-kubernetes-int-or-string": True}
PACKAGES = {
    "": "io.k8s.api.core",
    "apiextensions.k8s.io": "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions",
    "meta.k8s.io": "io.k8s.apimachinery.pkg.apis.meta",
}


def generate(root: Path) -> list[str]:
    marks = tomllib.loads((root / MARKS).read_text())
    types = Types(Models(), Marks(marks["marks"], marks["optional"]["fields"]))
    kinds = {f"{api_version} {kind}": types.kind(api_version, kind) for api_version, kind in wanted(marks["kinds"])}
    types.marks.expect_all_used()
    written = {"client": version("kubernetes"), "kinds": kinds, "types": types.schemas, "texts": types.texts}
    (root / GENERATED).write_text(json.dumps(written, separators=(",", ":"), ensure_ascii=False))
    return [str(GENERATED)]


def wanted(kinds: dict[str, list[str]]) -> Iterator[tuple[str, str]]:
    return ((api_version, kind) for api_version, names in kinds.items() for kind in names)


class Field(NamedTuple):
    name: str
    type: str
    is_required: bool
    is_int_or_string: bool
    text: str


class Model(NamedTuple):
    text: str
    fields: tuple[Field, ...]


class Models:
    """The client's models, by the names of their classes."""

    def __init__(self) -> None:
        found = find_spec("kubernetes")
        if not (found and found.origin):
            raise SystemExit(
                "the schemas of Kubernetes' kinds cannot be generated: the package `kubernetes` is not installed"
            )
        self._directory = Path(found.origin).parent / "client/models"
        imports = ast.walk(ast.parse((self._directory / "__init__.py").read_text()))
        self._modules = {
            alias.name: line.module.rpartition(".")[2]
            for line in imports
            if isinstance(line, ast.ImportFrom) and line.module
            for alias in line.names
        }

    def find(self, kind: str, group: str, version: str) -> str:
        """The class of a kind. Where two groups have a kind of one name, the client puts the group before it."""
        own = f"{(group or 'core').partition('.')[0].capitalize()}{version.capitalize()}{kind}"
        return own if own in self._modules else f"{version.capitalize()}{kind}"

    def read(self, name: str) -> Model:
        source = ast.parse((self._directory / f"{self._modules[name]}.py").read_text())
        model = next(node for node in source.body if isinstance(node, ast.ClassDef) and node.name == name)
        declared = {
            node.target.id: node
            for node in model.body
            if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name)
        }
        types, keys = (_written(declared.pop(name).value) for name in ("openapi_types", "attribute_map"))
        told = {field.name: field for field in (_told(name, node) for name, node in declared.items())}
        text = (ast.get_docstring(model) or "").partition("\n\nAttributes:")[0]
        return Model(text, tuple(told[keys[name]]._replace(type=kind) for name, kind in types.items()))


def _told(attribute: str, declared: ast.AnnAssign) -> Field:
    """What the declaration of an attribute says about a field, its type left out. Who has no default is required."""
    value = declared.value
    told = {word.arg: word.value for word in value.keywords} if isinstance(value, ast.Call) else {}
    return Field(
        name=_written(told.get("serialization_alias") or told.get("alias")) or attribute,
        type="",
        is_required=value is None or (isinstance(value, ast.Call) and "default" not in told),
        is_int_or_string="StrictInt | StrictStr" in ast.unparse(declared.annotation),
        text=_written(told.get("description")) or "",
    )


def _written(value: ast.expr | None) -> Any:
    return ast.literal_eval(value) if value else None


class Marks:
    """What marks.toml says beyond the models: of a field by `Type.field`, of a type by its name."""

    def __init__(self, marks: list[dict[str, Any]], optional: list[str]) -> None:
        self._says: dict[str, Schema] = {}
        for mark in marks:
            for name in mark["on"]:
                self._says.setdefault(name, {}).update(mark["says"])
        self._optional = frozenset(optional)
        self._unused = self._says.keys() | self._optional

    def of(self, name: str) -> Schema:
        self._unused.discard(name)
        return self._says.get(name, {})

    def make_optional(self, name: str) -> bool:
        self._unused.discard(name)
        return name in self._optional

    def expect_all_used(self) -> None:
        if self._unused:
            names = ", ".join(sorted(self._unused))
            raise SystemExit(f"{MARKS} speaks of what the client's models do not have: {names}; correct or remove it")


class Types:
    """Schemas by their OpenAPI names, each with all that it refers to."""

    def __init__(self, models: Models, marks: Marks) -> None:
        self.marks = marks
        self.schemas: dict[str, Schema] = {}
        self.texts: dict[str, dict[str, str]] = {}
        self._models = models
        self._names: dict[str, str] = {}

    def kind(self, api_version: str, kind: str) -> str:
        group, _, version = api_version.rpartition("/")
        package = PACKAGES.get(group, f"io.k8s.api.{group.partition('.')[0]}")
        name = self._add(self._models.find(kind, group, version), f"{package}.{version}")
        identity = {"group": group, "version": version, "kind": kind}
        self.schemas[name].setdefault("x-kubernetes-group-version-kind", []).append(identity)
        return name

    def _add(self, model: str, package: str) -> str:
        if model in self._names:
            return self._names[model]
        short = re.sub(r"^([A-Z][a-z]+)?V\d+((alpha|beta)\d+)?(?=[A-Z])", "", model)
        name = self._names[model] = f"{package}.{short}"
        text, fields = self._models.read(model)
        schema = self.schemas[name] = {"type": "object"}
        schema["properties"] = {field.name: self._field(short, field, package) for field in fields}
        demanded = [field.name for field in fields if field.is_required]
        schema["required"] = [field for field in demanded if not self.marks.make_optional(f"{short}.{field}")]
        schema |= self.marks.of(short)
        texts = {"": text} | {field.name: field.text for field in fields}
        self.texts[name] = {key: value for key, value in texts.items() if value}
        return name

    def _field(self, owner: str, field: Field, package: str) -> Schema:
        schema = INT_OR_STRING if field.is_int_or_string else self._typed(field.type, package)
        marked = self.marks.of(f"{owner}.{field.name}")
        if "format" in marked and "additionalProperties" in schema:
            return schema | {"additionalProperties": schema["additionalProperties"] | marked}
        return schema | marked

    def _typed(self, kind: str, package: str) -> Schema:
        if kind in PLAIN:
            return PLAIN[kind]
        if kind.startswith("List["):
            return {"type": "array", "items": self._typed(kind[len("List[") : -1], package)}
        if kind.startswith("Dict[str, "):
            return {"type": "object", "additionalProperties": self._typed(kind[len("Dict[str, ") : -1], package)}
        return {"$ref": f"#/components/schemas/{self._add(kind, package)}"}
