"""A rule as a tree. `at` is where a node begins in the text, for refusals.

Operators are calls of functions whose names have a `_` for each operand, as CEL calls them: `_+_`, `!_`.
"""

from collections.abc import Iterator
from typing import Any, NamedTuple


class Literal(NamedTuple):
    value: Any
    at: int


class Name(NamedTuple):
    name: str
    at: int


class Select(NamedTuple):
    """`operand.field`, or `operand.?field`."""

    operand: "Node"
    field: str
    at: int
    is_optional: bool = False


class Index(NamedTuple):
    """`operand[key]`, or `operand[?key]`."""

    operand: "Node"
    key: "Node"
    at: int
    is_optional: bool = False


class Call(NamedTuple):
    """`function(arguments)`, or `target.function(arguments)`."""

    function: str
    arguments: "tuple[Node, ...]"
    at: int
    target: "Node | None" = None


class Items(NamedTuple):
    items: "tuple[Node, ...]"
    at: int


class Entries(NamedTuple):
    entries: "tuple[tuple[Node, Node], ...]"
    at: int


class Choice(NamedTuple):
    condition: "Node"
    then: "Node"
    otherwise: "Node"
    at: int


class Terms(NamedTuple):
    """Terms joined by `&&` or by `||`, as many as there are."""

    operator: str
    terms: "tuple[Node, ...]"
    at: int


Node = Literal | Name | Select | Index | Call | Items | Entries | Choice | Terms


def depth_of(tree: Node) -> int:
    """Found without recursion: it is asked for because Python's is bounded."""
    return max(depth for _, depth in _nodes(tree))


def names_in(tree: Node) -> frozenset[str]:
    """Every name that is read somewhere."""
    return frozenset(node.name for node, _ in _nodes(tree) if isinstance(node, Name))


def _nodes(tree: Node) -> Iterator[tuple[Node, int]]:
    """Every node, and how deep it is."""
    waiting = [(tree, 1)]
    while waiting:
        node, depth = waiting.pop()
        yield node, depth
        waiting += [(child, depth + 1) for child in _children(node)]


def _children(node: Node) -> Iterator[Node]:
    waiting: list[Any] = [] if isinstance(node, Literal) else list(node)
    for part in waiting:
        if isinstance(part, Node):
            yield part
        elif isinstance(part, tuple):
            waiting += part
