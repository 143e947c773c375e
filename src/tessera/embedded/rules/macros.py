"""What looks like a function and is not: it is given expressions, and binds a name for them.

`all` and `exists` look past an item for which they fail, if another item decides. The others do not.
"""

from collections.abc import Callable, Collection
from typing import Any, cast

from tessera.embedded.rules.accessing import field_of, is_there
from tessera.embedded.rules.mistakes import RuleBroken, RuleFailed
from tessera.embedded.rules.parts import Compile, Frame, Macro, Part, Run, Scope
from tessera.embedded.rules.syntax import Call, Name, Node, Select
from tessera.embedded.rules.types import BOOL, DYN, Type, list_of, may_be, optional_of, part_of
from tessera.embedded.rules.values import NOTHING, Perhaps


def _has(compile_node: Compile, call: Call, scope: Scope) -> Part:
    (argument,) = call.arguments
    if not isinstance(argument, Select) or argument.is_optional:
        raise RuleBroken("invalid argument to has() macro", call.at)
    operand = compile_node(argument.operand, scope)
    key, _ = field_of(operand.type, argument)
    return Part(BOOL, is_there(operand.run, key))


class _Loop:
    """A macro over the items of a list or the keys of a map: `target.macro(name, …)`."""

    def __init__(self, compile_node: Compile, call: Call, scope: Scope) -> None:
        target = compile_node(cast("Node", call.target), scope)
        self._compile = compile_node
        self.range = _ranged(target, call)
        self.item = _item_type(target.type, call)
        self._scope, self.place = scope.binding(_bound(call), self.item)

    def condition(self, node: Node) -> Run:
        part = self._compile(node, self._scope)
        if not may_be(part.type, BOOL):
            raise RuleBroken(f"expected type 'bool' but found '{part.type}'", node.at)
        return part.run

    def value(self, node: Node) -> Part:
        return self._compile(node, self._scope)


def _bound(call: Call) -> str:
    name = call.arguments[0]
    if not isinstance(name, Name):
        raise RuleBroken("argument must be a simple name", name.at)
    return name.name


def _item_type(target: Type, call: Call) -> Type:
    if target.name in ("list", "map"):
        return target.parameters[0]
    if not (target.name == "object" or may_be(target, list_of(DYN))):
        raise RuleBroken(f"expression of type '{target}' cannot be range of a comprehension", call.at)
    return DYN


def _ranged(target: Part, call: Call) -> Callable[[Frame], Collection[Any]]:
    run = target.run

    def ranged(frame: Frame) -> Collection[Any]:
        value = run(frame)
        if type(value) is list or isinstance(value, dict):
            return cast("Collection[Any]", value)
        raise RuleFailed(f"no such overload: {call.function} over what is neither a list nor a map")

    return ranged


def _deciding(decisive: bool) -> Macro:
    """`exists` is decided by one True, `all` by one False."""

    def macro(compile_node: Compile, call: Call, scope: Scope) -> Part:
        loop = _Loop(compile_node, call, scope)
        condition, items, place = loop.condition(call.arguments[1]), loop.range, loop.place

        def run(frame: Frame) -> bool:
            failure = None
            for item in items(frame):
                frame[place] = item
                try:
                    if truth(condition(frame)) is decisive:
                        return decisive
                except RuleFailed as one:
                    failure = one
            if failure is not None:
                raise failure
            return not decisive

        return Part(BOOL, run)

    return macro


def _exists_one(compile_node: Compile, call: Call, scope: Scope) -> Part:
    loop = _Loop(compile_node, call, scope)
    kept = _kept(loop, call)
    return Part(BOOL, lambda frame: len(kept(frame)) == 1)


def _filter(compile_node: Compile, call: Call, scope: Scope) -> Part:
    loop = _Loop(compile_node, call, scope)
    return Part(list_of(loop.item), _kept(loop, call))


def _kept(loop: _Loop, call: Call) -> Callable[[Frame], list[Any]]:
    condition, items, place = loop.condition(call.arguments[1]), loop.range, loop.place

    def run(frame: Frame) -> list[Any]:
        kept: list[Any] = []
        for item in items(frame):
            frame[place] = item
            if truth(condition(frame)):
                kept.append(item)
        return kept

    return run


def _map(compile_node: Compile, call: Call, scope: Scope) -> Part:
    loop = _Loop(compile_node, call, scope)
    made, items, place = loop.value(call.arguments[-1]), loop.range, loop.place
    make = made.run
    condition = loop.condition(call.arguments[1]) if len(call.arguments) == 3 else None

    def run(frame: Frame) -> list[Any]:
        results: list[Any] = []
        for item in items(frame):
            frame[place] = item
            if condition is None or truth(condition(frame)):
                results.append(make(frame))
        return results

    return Part(list_of(made.type), run)


def _bind(compile_node: Compile, call: Call, scope: Scope) -> Part:
    """`cel.bind(name, value, expression)`."""
    value = compile_node(call.arguments[1], scope)
    inner, place = scope.binding(_bound(call), value.type)
    body = compile_node(call.arguments[2], inner)
    given, run_body = value.run, body.run

    def run(frame: Frame) -> Any:
        frame[place] = given(frame)
        return run_body(frame)

    return Part(body.type, run)


def _opt_map(*, is_flat: bool) -> Macro:
    """`perhaps.optMap(name, expression)`: what is held, made into something else. The flat one makes an optional."""

    def macro(compile_node: Compile, call: Call, scope: Scope) -> Part:
        target = compile_node(cast("Node", call.target), scope)
        inner, place = scope.binding(_bound(call), part_of(target.type))
        body = compile_node(call.arguments[1], inner)
        given, make = target.run, body.run

        def run(frame: Frame) -> Perhaps:
            value = given(frame)
            if type(value) is not Perhaps:
                raise RuleFailed(f"no such overload: {call.function} of what is no optional")
            if not value.has_value:
                return NOTHING
            frame[place] = value.held
            made = make(frame)
            return made if is_flat else Perhaps(made)

        return Part(body.type if is_flat else optional_of(body.type), run)

    return macro


def truth(value: Any) -> bool:
    if value is True or value is False:
        return value
    raise RuleFailed("no such overload: a condition that is neither true nor false")


MACROS: dict[tuple[str, int], Macro] = {
    ("has", 1): _has,
    (".all", 2): _deciding(False),
    (".exists", 2): _deciding(True),
    (".exists_one", 2): _exists_one,
    (".filter", 2): _filter,
    (".map", 2): _map,
    (".map", 3): _map,
    (".optMap", 2): _opt_map(is_flat=False),
    (".optFlatMap", 2): _opt_map(is_flat=True),
    ("cel.bind", 3): _bind,
}
"""By name, with a dot before a method's, and by how many arguments there are."""
