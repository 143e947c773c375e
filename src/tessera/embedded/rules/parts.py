"""What a rule is compiled into: closures that know their type.

Each takes the frame of one evaluation, in which every variable has its place. A name that a macro binds has a place of
its own, so nothing is ever put back.
"""

import itertools
from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple

import msgspec

from tessera.embedded.rules.mistakes import RuleFailed
from tessera.embedded.rules.syntax import Call, Node
from tessera.embedded.rules.types import Type

Frame = list[Any]
Run = Callable[[Frame], Any]


class Part(msgspec.Struct, frozen=True):
    type: Type
    run: Run
    is_constant: bool = False


class Variable(NamedTuple):
    type: Type
    place: int


class Scope:
    """Which names mean something here."""

    def __init__(self, variables: Mapping[str, Variable], places: Iterator[int]) -> None:
        self._variables = variables
        self._places = places

    @classmethod
    def of(cls, variables: Mapping[str, Type]) -> "Scope":
        places = itertools.count()
        return cls({name: Variable(kind, next(places)) for name, kind in variables.items()}, places)

    def find(self, name: str) -> Variable | None:
        return self._variables.get(name)

    def binding(self, name: str, kind: Type) -> tuple["Scope", int]:
        """The scope in which one more name is known, and that name's place."""
        variable = Variable(kind, next(self._places))
        return Scope({**self._variables, name: variable}, self._places), variable.place

    def size(self) -> int:
        """How many places there are; none is given out afterwards."""
        return next(self._places)


Compile = Callable[[Node, Scope], Part]
Macro = Callable[[Compile, Call, Scope], Part]


def constant(value: Any, kind: Type) -> Part:
    return Part(kind, lambda _: value, is_constant=True)


def folded(part: Part) -> Part:
    """Decide now what depends on nothing. What fails, fails again each time it is asked for."""
    try:
        return constant(part.run([]), part.type)
    except RuleFailed:
        return part
