"""What Kubernetes adds to lists."""

from collections.abc import Callable, Sequence
from datetime import timedelta
from itertools import pairwise
from typing import Any

from tessera.embedded.rules.library.operators import ORDERED
from tessera.embedded.rules.mistakes import RuleFailed
from tessera.embedded.rules.overloads import Overload
from tessera.embedded.rules.types import BOOL, DYN, INT, LIST, Type, part_of
from tessera.embedded.rules.values import is_equal, type_of, whole

_NUMBERS = {"int", "double"}
_ORDERED = {kind.name for kind in ORDERED}


def _ordered(items: list[Any]) -> list[Any]:
    """The items, if each can be compared with each."""
    names = {type_of(item).name for item in items}
    if names <= _NUMBERS or (len(names) == 1 and names <= _ORDERED):
        return items
    raise RuleFailed(f"no such overload: a list of {', '.join(sorted(names))} has no order")


def _is_sorted(items: list[Any]) -> bool:
    return all(one <= next_one for one, next_one in pairwise(_ordered(items)))


def _extreme(name: str, choose: Callable[[list[Any]], Any]) -> Callable[[list[Any]], Any]:
    def chosen(items: list[Any]) -> Any:
        if not items:
            raise RuleFailed(f"{name} called on empty list")
        return choose(_ordered(items))

    return chosen


def _sum(items: list[Any]) -> Any:
    names = {type_of(item).name for item in items}
    if names == {"duration"}:
        return sum(items, timedelta())
    if not names <= _NUMBERS:
        raise RuleFailed(f"no such overload: a list of {', '.join(sorted(names))} has no sum")
    total: Any = sum(items)
    return whole(total) if isinstance(total, int) else total


def _index_of(items: list[Any], wanted: Any) -> int:
    return next((index for index, item in enumerate(items) if is_equal(item, wanted)), -1)


def _last_index_of(items: list[Any], wanted: Any) -> int:
    return next((index for index in reversed(range(len(items))) if is_equal(items[index], wanted)), -1)


def _of_item(types: Sequence[Type]) -> Type:
    return part_of(types[0])


OVERLOADS = (
    Overload(".isSorted", (LIST,), BOOL, _is_sorted),
    Overload(".sum", (LIST,), _of_item, _sum),
    Overload(".min", (LIST,), _of_item, _extreme("min", min)),
    Overload(".max", (LIST,), _of_item, _extreme("max", max)),
    Overload(".indexOf", (LIST, DYN), INT, _index_of),
    Overload(".lastIndexOf", (LIST, DYN), INT, _last_index_of),
)
