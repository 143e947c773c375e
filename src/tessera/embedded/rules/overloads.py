"""Functions that go by the types of what they are given.

Types that are known pick the overload when the rule is compiled. Where one is not, the values pick it.
"""

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import msgspec

from tessera.embedded.rules.mistakes import RuleBroken, RuleFailed
from tessera.embedded.rules.parts import Frame, Part, Run, folded
from tessera.embedded.rules.types import DYN, NULL, Type, either_of, may_be
from tessera.embedded.rules.values import type_of

Result = Type | Callable[[Sequence[Type]], Type]


class Overload(msgspec.Struct, frozen=True):
    """`name` of a method has a dot before it: its first parameter is what stands before the dot in a rule."""

    name: str
    parameters: tuple[Type, ...]
    result: Result
    call: Callable[..., Any]

    def accepts(self, types: Sequence[Type]) -> bool:
        return len(types) == len(self.parameters) and all(map(may_be, types, self.parameters))

    def gives(self, types: Sequence[Type]) -> Type:
        return self.result if isinstance(self.result, Type) else self.result(types)


def by_name(overloads: Iterable[Overload]) -> dict[str, tuple[Overload, ...]]:
    found: dict[str, tuple[Overload, ...]] = {}
    for overload in overloads:
        found[overload.name] = (*found.get(overload.name, ()), overload)
    return found


def called(function: str, overloads: Sequence[Overload], arguments: Sequence[Part], at: int) -> Part:
    types = [argument.type for argument in arguments]
    fitting = [overload for overload in overloads if overload.accepts(types)]
    if not fitting:
        raise RuleBroken(no_overload(function, types), at)
    runs = [argument.run for argument in arguments]
    is_certain = len(fitting) == 1 and not any(
        kind in (DYN, NULL) and parameter != DYN for kind, parameter in zip(types, fitting[0].parameters, strict=True)
    )
    run = _applied(fitting[0].call, runs) if is_certain else _chosen(function, fitting, runs)
    part = Part(either_of([overload.gives(types) for overload in fitting]), run)
    return folded(part) if all(argument.is_constant for argument in arguments) else part


def no_overload(function: str, types: Sequence[Type]) -> str:
    return f"found no matching overload for '{function.lstrip('.')}' applied to '({', '.join(map(str, types))})'"


def _applied(call: Callable[..., Any], runs: Sequence[Run]) -> Run:
    if len(runs) == 1:
        (only,) = runs
        return lambda frame: call(only(frame))
    if len(runs) == 2:
        first, second = runs
        return lambda frame: call(first(frame), second(frame))
    return lambda frame: call(*[run(frame) for run in runs])


def _chosen(function: str, overloads: Sequence[Overload], runs: Sequence[Run]) -> Run:
    """By the values' own types; what was chosen for some is remembered."""
    chosen: dict[tuple[type[Any], ...], Callable[..., Any]] = {}

    def run(frame: Frame) -> Any:
        values = [one(frame) for one in runs]
        kinds = tuple(map(type, values))
        call = chosen.get(kinds)
        if call is None:
            call = chosen[kinds] = _matching(function, overloads, [type_of(value).name for value in values])
        return call(*values)

    return run


def _matching(function: str, overloads: Sequence[Overload], names: Sequence[str]) -> Callable[..., Any]:
    for overload in overloads:
        wanted = [parameter.name for parameter in overload.parameters]
        if all(want in (name, DYN.name) for want, name in zip(wanted, names, strict=True)):
            return overload.call
    raise RuleFailed(f"no such overload: {function.lstrip('.')}({', '.join(names)})")
