"""From the tree to closures, refusing on the way what no value could make sense of."""

from collections.abc import Callable, Sequence
from typing import Any

from tessera.embedded.rules import types
from tessera.embedded.rules.accessing import field_of, indexed, perhaps_indexed, perhaps_selected, selected
from tessera.embedded.rules.library import LIBRARY
from tessera.embedded.rules.macros import MACROS, truth
from tessera.embedded.rules.mistakes import RuleBroken, RuleFailed
from tessera.embedded.rules.overloads import called, no_overload
from tessera.embedded.rules.parts import Frame, Part, Run, Scope, constant
from tessera.embedded.rules.syntax import Call, Choice, Entries, Index, Items, Literal, Name, Node, Select, Terms
from tessera.embedded.rules.types import BOOL, DYN, LIST, TYPE, either_of, list_of, map_of, may_be, optional_of
from tessera.embedded.rules.values import TYPES, TypeName, is_equal, type_of

_TYPE_NAMES = {kind.name for kind in TYPES.values()}


def compile_node(node: Node, scope: Scope) -> Part:
    return _COMPILERS[type(node)](node, scope)


def _literal(node: Literal, _: Scope) -> Part:
    return constant(node.value, type_of(node.value))


def _name(node: Name, scope: Scope) -> Part:
    variable = scope.find(node.name)
    if variable is not None:
        place = variable.place
        return Part(variable.type, lambda frame: frame[place])
    if node.name in _TYPE_NAMES:
        return constant(TypeName(node.name), TYPE)
    raise RuleBroken(f"undeclared reference to '{node.name}' (in container '')", node.at)


def _select(node: Select, scope: Scope) -> Part:
    operand = compile_node(node.operand, scope)
    is_optional = operand.type.name == types.OPTIONAL.name
    key, kind = field_of(operand.type, node)
    run = perhaps_selected(operand.run, key) if node.is_optional else selected(operand.run, key)
    return Part(optional_of(kind) if is_optional or node.is_optional else kind, run)


def _index(node: Index, scope: Scope) -> Part:
    operand, index = compile_node(node.operand, scope), compile_node(node.key, scope)
    is_optional = operand.type.name == types.OPTIONAL.name
    whole = types.part_of(operand.type) if is_optional else operand.type
    keys = types.INT if whole.name == "list" else types.part_of(whole, 0) if whole.name == "map" else DYN
    if not (may_be(whole, LIST) or may_be(whole, types.MAP)) or not may_be(index.type, keys):
        raise RuleBroken(no_overload("_[_]", [operand.type, index.type]), node.at)
    kind = types.part_of(whole)
    run = (perhaps_indexed if node.is_optional else indexed)(operand.run, index.run)
    return Part(optional_of(kind) if is_optional or node.is_optional else kind, run)


def _call(node: Call, scope: Scope) -> Part:
    function, target = _resolved(node, scope)
    macro = MACROS.get((function, len(node.arguments)))
    if macro is not None:
        return macro(compile_node, node, scope)
    if function not in LIBRARY and function not in _EQUALITY:
        raise RuleBroken(f"undeclared reference to '{node.function}' (in container '')", node.at)
    given = node.arguments if target is None else (target, *node.arguments)
    arguments = [compile_node(argument, scope) for argument in given]
    if function in _EQUALITY:
        return _equality(node, arguments)
    return called(function, LIBRARY[function], arguments, node.at)


def _resolved(node: Call, scope: Scope) -> tuple[str, Node | None]:
    """The name to look for, and what stands before the dot if that is a value and not the first half of a name."""
    target = node.target
    if target is None:
        return node.function, None
    if isinstance(target, Name) and scope.find(target.name) is None:
        full = f"{target.name}.{node.function}"
        if full in LIBRARY or (full, len(node.arguments)) in MACROS:
            return full, None
    return f".{node.function}", target


_EQUALITY = {"_==_": True, "_!=_": False}


def _equality(node: Call, arguments: Sequence[Part]) -> Part:
    one, other = arguments
    if not may_be(one.type, other.type):
        raise RuleBroken(no_overload(node.function, [one.type, other.type]), node.at)
    first, second, wanted = one.run, other.run, _EQUALITY[node.function]
    if other.is_constant and type(fixed := second([])) in (str, type(None)):  # Python's own equality is right for these
        return Part(BOOL, lambda frame: (first(frame) == fixed) is wanted)
    return Part(BOOL, lambda frame: is_equal(first(frame), second(frame)) is wanted)


def _items(node: Items, scope: Scope) -> Part:
    parts = [compile_node(item, scope) for item in node.items]
    kind = list_of(either_of([part.type for part in parts]))
    runs = [part.run for part in parts]
    if all(part.is_constant for part in parts):
        return constant([run([]) for run in runs], kind)
    return Part(kind, lambda frame: [run(frame) for run in runs])


def _entries(node: Entries, scope: Scope) -> Part:
    pairs = [(compile_node(key, scope), compile_node(value, scope)) for key, value in node.entries]
    kind = map_of(either_of([key.type for key, _ in pairs]), either_of([value.type for _, value in pairs]))
    runs = [(key.run, value.run) for key, value in pairs]

    def run(frame: Frame) -> dict[Any, Any]:
        made: dict[Any, Any] = {}
        for key_run, value_run in runs:
            key = key_run(frame)
            if type(key) not in (str, int, bool):
                raise RuleFailed(f"unsupported key type: {type_of(key)}")
            if key in made:
                raise RuleFailed(f"Failed with repeated key: {key}")
            made[key] = value_run(frame)
        return made

    return Part(kind, run)


def _choice(node: Choice, scope: Scope) -> Part:
    condition = _condition(node.condition, scope)
    then, otherwise = compile_node(node.then, scope), compile_node(node.otherwise, scope)
    if not may_be(then.type, otherwise.type):
        raise RuleBroken(no_overload("_?_:_", [BOOL, then.type, otherwise.type]), node.at)
    one, other = then.run, otherwise.run
    return Part(
        either_of([then.type, otherwise.type]),
        lambda frame: one(frame) if truth(condition(frame)) else other(frame),
    )


def _terms(node: Terms, scope: Scope) -> Part:
    """One term that is False decides `&&`, one that is True `||`, whatever became of the others."""
    decisive = node.operator == "||"
    conditions = [_condition(term, scope) for term in node.terms]

    def run(frame: Frame) -> bool:
        failure = None
        for condition in conditions:
            try:
                value = condition(frame)
                if value is decisive:
                    return decisive
                if value is not (not decisive):
                    failure = failure or RuleFailed("no such overload")
            except RuleFailed as one:
                failure = failure or one
        if failure is not None:
            raise failure
        return not decisive

    return Part(BOOL, run)


def _condition(node: Node, scope: Scope) -> Run:
    part = compile_node(node, scope)
    if not may_be(part.type, BOOL):
        raise RuleBroken(f"expected type 'bool' but found '{part.type}'", node.at)
    return part.run


_COMPILERS: dict[type, Callable[[Any, Scope], Part]] = {
    Literal: _literal,
    Name: _name,
    Select: _select,
    Index: _index,
    Call: _call,
    Items: _items,
    Entries: _entries,
    Choice: _choice,
    Terms: _terms,
}
