"""An apply brought into an object: what it states is merged in, what it states no longer is taken out."""

from collections.abc import Iterator
from typing import Any, cast

from tessera.embedded.documents import Document
from tessera.embedded.ownership.fields import Fields, is_owned
from tessera.embedded.ownership.shapes import Shape


def merge(live: Any, applied: Any, shape: Shape) -> Any:
    """What is applied wins; what it does not mention stays."""
    if isinstance(live, dict) and isinstance(applied, dict) and not shape.is_atomic_map:
        merged = dict(cast("Document", live))
        for name, value in cast("Document", applied).items():
            merged[name] = merge(merged[name], value, shape.field(name)) if name in merged else value
        return merged
    if isinstance(live, list) and isinstance(applied, list) and not shape.is_atomic_list:
        return list(_merged_elements(cast("list[Any]", live), cast("list[Any]", applied), shape))
    return cast("Any", applied)


def _merged_elements(live: list[Any], applied: list[Any], shape: Shape) -> Iterator[Any]:
    """In the order in which they are applied; elements of others keep their place between those that are shared."""
    there = list(shape.elements(live))
    mine = dict(shape.elements(applied))
    alone = _without_repeated(there)
    waiting = list(mine)
    expected = [step for step in mine if step in {step for step, _ in there}]
    for step, item in there:
        if step not in mine:
            yield item
        elif expected and step == expected[0]:
            del expected[0]
            upto = waiting.index(step) + 1
            yield from (_merged_element(alone, mine, known, shape) for known in waiting[:upto])
            del waiting[:upto]
    yield from (_merged_element(alone, mine, known, shape) for known in waiting)


def _merged_element(live: dict[str, Any], applied: dict[str, Any], step: str, shape: Shape) -> Any:
    return merge(live[step], applied[step], shape.item) if step in live else applied[step]


def _without_repeated(elements: list[tuple[str, Any]]) -> dict[str, Any]:
    """Elements that share a key cannot be told apart, so what is applied replaces them all."""
    steps = [step for step, _ in elements]
    return {step: item for step, item in elements if steps.count(step) == 1}


def prune(merged: Any, once: Fields, kept: Fields, shape: Shape) -> Any:
    """Without what its maker `once` applied and nobody, they included, has `kept`.

    A field with a name of its own stays as long as anything in it is kept. An element of a list, or a key that the
    user chose, goes as a whole when nobody keeps the element itself. What holds nothing any more goes as well, unless
    somebody keeps it as it is, empty.
    """
    if isinstance(merged, dict) and not shape.is_atomic_map:
        left: Document = {}
        for name, value in cast("Document", merged).items():
            step = "f:" + name
            if _goes(step, once, kept, is_named=shape.declares(name)):
                continue
            below = _pruned_below(value, step, once, kept, shape.field(name))
            if below or not value or _is_kept(step, kept):
                left[name] = below
        return left
    if isinstance(merged, list) and not shape.is_atomic_list:
        return [
            _pruned_below(item, step, once, kept, shape.item)
            for step, item in shape.elements(cast("list[Any]", merged))
            if not _goes(step, once, kept, is_named=False)
        ]
    return cast("Any", merged)


def _goes(step: str, once: Fields, kept: Fields, *, is_named: bool) -> bool:
    if step not in once:
        return False
    if is_named:
        return step not in kept
    return is_owned(once[step]) and not _is_kept(step, kept)


def _is_kept(step: str, kept: Fields) -> bool:
    return step in kept and is_owned(kept[step])


def _pruned_below(value: Any, step: str, once: Fields, kept: Fields, shape: Shape) -> Any:
    return prune(value, once[step], kept.get(step, {}), shape) if step in once else value
