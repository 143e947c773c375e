"""How a schema divides a document into parts that are owned one by one.

A map is divided into its fields unless it is atomic; a list of type map or set into its elements, by their keys or
values; everything else is owned as a whole. What no schema describes is divided too, but for its lists. Shapes stand
beside the nodes of a schema and remember what every write would ask again.
"""

from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import Any, Literal, Protocol, cast

from tessera.embedded.documents import Document, Frozen
from tessera.embedded.ownership.fields import key_step, value_step

_SHAPES_KEPT = 1024
"""More than there are built-in kinds; definitions that were changed many times do not pile up."""


class Schema(Protocol):
    """What owning needs to know of a schema."""

    @property
    def raw(self) -> Frozen: ...
    @property
    def map_type(self) -> Literal["atomic", "granular"]: ...
    @property
    def list_type(self) -> Literal["atomic", "map", "set"]: ...
    @property
    def list_keys(self) -> tuple[str, ...]: ...
    def child(self, step: str | int) -> "Schema | None": ...


class Shape:
    __slots__ = ("_item", "_keys", "_named", "_rest", "_schema", "is_atomic_list", "is_atomic_map")

    def __init__(self, schema: Schema | None) -> None:
        self._schema = schema
        self.is_atomic_map = schema is not None and schema.map_type == "atomic"
        self.is_atomic_list = schema is None or schema.list_type == "atomic"
        self._named: dict[str, Shape | None] = dict.fromkeys(schema.raw.get("properties", ())) if schema else {}
        self._rest: Shape | None = None
        self._item: Shape | None = None
        self._keys: tuple[tuple[str, Any], ...] | None = None

    def declares(self, name: str) -> bool:
        """Whether this is a field with a name of its own, and not a key that the user chose."""
        return name in self._named

    def field(self, name: str) -> "Shape":
        if name in self._named:
            known = self._named[name]
            if known is None:
                known = self._named[name] = self._child(name)
            return known
        if self._rest is None:
            self._rest = self._child(name) if self._schema else self
        return self._rest

    @property
    def item(self) -> "Shape":
        if self._item is None:
            self._item = self._child(0)
        return self._item

    def elements(self, items: Sequence[Any]) -> Iterator[tuple[str, Any]]:
        """The elements of a list that is not atomic, each with the step that leads to it."""
        for index, item in enumerate(items):
            yield self._step(item, index), item

    def _step(self, item: Any, index: int) -> str:
        """By its place if it has no key: validation refuses such an element, and owning must not stumble over it."""
        keys = self._item_keys()
        if not keys:
            return value_step(item)
        if not isinstance(item, dict):
            return f"i:{index}"
        element = cast("Document", item)
        named = {name: element.get(name, default) for name, default in keys if name in element or default is not None}
        return key_step(named) if named else f"i:{index}"

    def _item_keys(self) -> tuple[tuple[str, Any], ...]:
        """Each key with the value that an element has which leaves it out."""
        if self._keys is None:
            names = self._schema.list_keys if self._schema and self._schema.list_type == "map" else ()
            item = self._schema.child(0) if self._schema else None
            properties: Frozen = item.raw.get("properties", {}) if item else {}
            self._keys = tuple((name, properties.get(name, {}).get("default")) for name in names)
        return self._keys

    def _child(self, step: str | int) -> "Shape":
        child = self._schema.child(step) if self._schema else None
        return Shape(child) if child is not None else UNDESCRIBED


UNDESCRIBED = Shape(None)


@lru_cache(maxsize=_SHAPES_KEPT)
def shape_of(schema: Schema) -> Shape:
    return Shape(schema)
