"""Strategic merge patch: objects are merged field by field, lists as the schema says.

A list of objects with a merge key is merged element by element, a list of plain values that merges becomes the union,
any other is replaced. What a merge cannot say, directives beside the fields say.
"""

from collections.abc import Sequence
from typing import Any, cast

from tessera.embedded.documents import Document, copied
from tessera.embedded.refusals import ApiRefusal, bad_request
from tessera.embedded.schemas import Schema

_DIRECTIVE = "$patch"
_RETAIN = "$retainKeys"
_ORDER = "$setElementOrder/"
_REMOVE = "$deleteFromPrimitiveList/"


def strategic_merge(document: Document, patch: Document, schema: Schema) -> Document:
    return _merged_object(copied(document), copied(patch), schema)


def _merged_object(live: Document, patch: Document, schema: Schema | None) -> Document:
    if _DIRECTIVE in patch:
        return _as_directed(patch)
    after = _retained(live, patch)
    for name, value in patch.items():
        if name.startswith("$"):
            continue
        if value is None:
            after.pop(name, None)
        else:
            after[name] = _merged_field(after.get(name), value, schema.child(name) if schema else None)
    for name, gone in _directed(patch, _REMOVE):
        if name in after:
            after[name] = [value for value in after[name] if value not in gone]
    for name, order in _directed(patch, _ORDER):
        if name in after:
            key = _merge_key(schema.child(name) if schema else None)
            after[name] = _in_order(after[name], order, live.get(name) or [], key)
    return after


def _as_directed(patch: Document) -> Document:
    match patch[_DIRECTIVE]:
        case "replace":
            return {name: value for name, value in patch.items() if name != _DIRECTIVE}
        case "delete":
            return {}
        case unknown:
            raise bad_request(f'a $patch of an object is "{unknown}", expected "replace" or "delete"')


def _retained(live: Document, patch: Document) -> Document:
    """A copy with those keys alone that `$retainKeys` names: one choice gives way to another."""
    if _RETAIN not in patch:
        return dict(live)
    kept = patch[_RETAIN]
    changed = {name for name, value in patch.items() if value is not None and not name.startswith("$")}
    if not isinstance(kept, list) or not changed <= set(cast("list[str]", kept)):
        raise bad_request("$retainKeys must be a list that has every field of the patch beside it")
    return {name: value for name, value in live.items() if name in kept}


def _directed(patch: Document, prefix: str) -> list[tuple[str, list[Any]]]:
    """The lists that a directive gives, by the fields that they are about."""
    found = [(name.removeprefix(prefix), value) for name, value in patch.items() if name.startswith(prefix)]
    if any(not isinstance(value, list) for _, value in found):
        raise bad_request(f"{prefix}{found[0][0]} must be a list")
    return found


def _merged_field(live: Any, value: Any, schema: Schema | None) -> Any:
    if isinstance(live, dict) and isinstance(value, dict) and not _has_strategy(schema, "replace"):
        return _merged_object(cast("Document", live), cast("Document", value), schema)
    if isinstance(live, list) and isinstance(value, list) and _has_strategy(schema, "merge"):
        return _merged_list(cast("list[Any]", live), cast("list[Any]", value), cast("Schema", schema))
    return _cleaned(value)


def _merged_list(live: list[Any], patch: list[Any], schema: Schema) -> list[Any]:
    key = _merge_key(schema)
    if not key:
        union = list(dict.fromkeys([*live, *patch]))
        return _in_order(union, patch, live, key)
    if any(element.get(_DIRECTIVE) == "replace" for element in _objects(patch)):
        return [_cleaned(element) for element in patch if _DIRECTIVE not in element]
    gone = [_identity(element, key) for element in _objects(patch) if element.get(_DIRECTIVE) == "delete"]
    merged = {_identity(element, key): element for element in _objects(live)}
    merged = {identity: element for identity, element in merged.items() if identity not in gone}
    changed = [element for element in _objects(patch) if _DIRECTIVE not in element]
    for element in changed:
        identity = _identity(element, key)
        known = merged.get(identity)
        merged[identity] = _cleaned(element) if known is None else _merged_object(known, element, schema.child(0))
    return _in_order(list(merged.values()), changed, live, key)


def _in_order(merged: list[Any], wanted: Sequence[Any], live: Sequence[Any], key: str) -> list[Any]:
    """What `wanted` names stands in its order; the others stay before what they stood before in the live list."""
    first = {_identity(element, key): place for place, element in reversed(list(enumerate(wanted)))}
    stood = {_identity(element, key): place for place, element in reversed(list(enumerate(live)))}
    named = sorted((one for one in merged if _identity(one, key) in first), key=lambda one: first[_identity(one, key)])
    others = [one for one in merged if _identity(one, key) not in first]
    others.sort(key=lambda one: stood.get(_identity(one, key), len(stood)))
    ordered: list[Any] = []
    for one in named:
        place = stood.get(_identity(one, key))
        while others and place is not None and stood.get(_identity(others[0], key), place) < place:
            ordered.append(others.pop(0))
        ordered.append(one)
    return ordered + others


def _identity(element: Any, key: str) -> Any:
    """By what an element of a list is told from the others: its merge key, or itself."""
    if not key:
        return element
    if not isinstance(element, dict) or key not in element:
        raise _no_key(element, key)
    return cast("Document", element)[key]


def _objects(elements: Sequence[Any]) -> list[Document]:
    wrong = [element for element in elements if not isinstance(element, dict)]
    if wrong:
        raise bad_request(f"a list that is merged by key has {wrong[0]!r}, expected objects only")
    return cast("list[Document]", list(elements))


def _no_key(element: Any, key: str) -> ApiRefusal:
    return bad_request(f"map: {element} does not contain declared merge key: {key}")


def _merge_key(schema: Schema | None) -> str:
    return schema.patch_merge_key if schema else ""


def _has_strategy(schema: Schema | None, name: str) -> bool:
    return schema is not None and name in schema.patch_strategy.split(",")


def _cleaned(value: Any) -> Any:
    """A value that is new: a null or a directive in it has nothing to act on."""
    if isinstance(value, dict):
        parts = cast("Document", value).items()
        return {name: _cleaned(part) for name, part in parts if part is not None and not _is_directed(name, part)}
    if isinstance(value, list):
        return [_cleaned(part) for part in cast("list[Any]", value) if not _is_directed("", part)]
    return value


def _is_directed(name: str, part: Any) -> bool:
    return name.startswith((_DIRECTIVE, _RETAIN, _ORDER, _REMOVE)) or (isinstance(part, dict) and _DIRECTIVE in part)
