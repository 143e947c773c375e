"""A rule, ready to be decided as often as one likes."""

from collections.abc import Mapping
from typing import Any

from tessera.embedded.rules.compiling import compile_node
from tessera.embedded.rules.mistakes import RuleBroken, RuleFailed
from tessera.embedded.rules.parsing import parse
from tessera.embedded.rules.parts import Part, Scope
from tessera.embedded.rules.syntax import names_in
from tessera.embedded.rules.types import Type, may_be


class Program:
    """Holds no state of an evaluation: one may be used again while another is under way. `reads` are names in it."""

    def __init__(self, text: str, part: Part, names: tuple[str, ...], reads: frozenset[str], size: int) -> None:
        self.text = text
        self.reads = reads
        self.type = part.type
        self._run = part.run
        self._names = names
        self._bound = [None] * (size - len(names))

    def evaluate(self, variables: Mapping[str, Any]) -> Any:
        """`variables` has every declared name. Raises RuleFailed."""
        return self._run([*[variables[name] for name in self._names], *self._bound])


def compile_rule(text: str, variables: Mapping[str, Type], *, result: Type | None = None) -> Program:
    """`variables` are the names that may be used; `result` is what must come out. Raises RuleBroken."""
    scope = Scope.of(variables)
    try:
        tree = parse(text)
        part = compile_node(tree, scope)
        if result is not None and not may_be(part.type, result):
            raise RuleBroken(f"must evaluate to {result}, and evaluates to {part.type}")
    except RuleBroken as broken:
        raise broken.placed_in(text) from None
    return Program(text, part, tuple(variables), names_in(tree), scope.size())


def told_by(program: Program | None, variables: Mapping[str, Any], otherwise: str) -> str:
    """A message that is computed; the other one where there is no such program, it fails, or gives no single line."""
    try:
        told = program.evaluate(variables) if program else ""
    except RuleFailed:
        return otherwise
    is_usable = isinstance(told, str) and told.strip() and "\n" not in told.strip()
    return told.strip() if is_usable else otherwise
