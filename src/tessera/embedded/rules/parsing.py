"""From words to a tree, by how tightly operators bind (a Pratt parser)."""

from tessera.embedded.rules.lexing import Word, words_of
from tessera.embedded.rules.mistakes import RuleBroken
from tessera.embedded.rules.syntax import (
    Call,
    Choice,
    Entries,
    Index,
    Items,
    Literal,
    Name,
    Node,
    Select,
    Terms,
    depth_of,
)
from tessera.embedded.rules.values import LARGEST_INT

MAX_LENGTH = 100_000
MAX_DEPTH = 100
"""How deep a rule may nest: Python's own stack bounds what can be read, compiled and decided."""

_TOO_DEEP = RuleBroken(f"the rule nests deeper than {MAX_DEPTH} levels")
_COMPARISONS = ("==", "!=", "<", "<=", ">", ">=", "in")
_BINDS = {"?": 1, "||": 2, "&&": 3, "+": 5, "-": 5, "*": 6, "/": 6, "%": 6} | dict.fromkeys(_COMPARISONS, 4)
_LOOSEST, _UNARY = 1, 7
_CONSTANTS = {"true": True, "false": False, "null": None}
_RESERVED = "as break const continue else for function if import let loop package namespace return var void while"
NO_NAMES = frozenset(_RESERVED.split()) | {"in", *_CONSTANTS}
"""Words that cannot name a variable."""


def parse(text: str) -> Node:
    if len(text) > MAX_LENGTH:
        raise RuleBroken(f"the rule has {len(text)} characters, expected at most {MAX_LENGTH}")
    parser = _Parser(text)
    tree = parser.expression(_LOOSEST)
    parser.expect("<EOF>")
    if depth_of(tree) > MAX_DEPTH:
        raise _TOO_DEEP
    return tree


class _Parser:
    def __init__(self, text: str) -> None:
        self._words = list(words_of(text))
        self._next = 0
        self._depth = 0

    @property
    def _word(self) -> Word:
        return self._words[self._next]

    def _is_at(self, *signs: str) -> bool:
        word = self._word
        return word.kind != "value" and word.text in signs

    def _take(self) -> Word:
        word = self._word
        self._next += 1
        return word

    def _takes(self, sign: str) -> bool:
        taken = self._is_at(sign)
        self._next += taken
        return taken

    def expect(self, sign: str) -> Word:
        return self._take() if self._is_at(sign) else self._stop(f"expecting '{sign}'")

    def _stop(self, why: str) -> Word:
        raise RuleBroken(f"Syntax error: mismatched input '{self._word.text}' {why}", self._word.at)

    def expression(self, loosest: int) -> Node:
        """Everything from here on that binds at least so tightly."""
        self._depth += 1
        if self._depth > MAX_DEPTH:
            raise _TOO_DEEP
        tree = self._unary()
        while (binds := self._binding()) >= loosest:
            tree = self._joined(tree, binds)
        self._depth -= 1
        return tree

    def _binding(self) -> int:
        word = self._word
        return 0 if word.kind == "value" else _BINDS.get(word.text, 0)

    def _joined(self, left: Node, binds: int) -> Node:
        operator = self._take()
        if operator.text == "?":
            then = self.expression(binds + 1)
            self.expect(":")
            return Choice(left, then, self.expression(binds), operator.at)
        if operator.text in ("&&", "||"):
            terms = [left, self.expression(binds + 1)]
            while self._takes(operator.text):
                terms.append(self.expression(binds + 1))
            return Terms(operator.text, tuple(terms), operator.at)
        return Call(f"_{operator.text}_", (left, self.expression(binds + 1)), operator.at)

    def _unary(self) -> Node:
        if not self._is_at("-", "!"):
            return self._postfix()
        operator = self._take()
        word = self._word
        if operator.text == "-" and word.kind == "value" and type(word.value) in (int, float):
            self._words[self._next] = word._replace(value=-word.value)
            return self._postfix()
        return Call(f"{operator.text}_", (self.expression(_UNARY),), operator.at)

    def _postfix(self) -> Node:
        tree = self._primary()
        while self._is_at(".", ".?", "[", "[?"):
            sign = self._take()
            is_optional = sign.text.endswith("?")
            if sign.text.startswith("["):
                tree = Index(tree, self.expression(_LOOSEST), sign.at, is_optional)
                self.expect("]")
            else:
                tree = self._member(tree, sign, is_optional)
        return tree

    def _member(self, operand: Node, dot: Word, is_optional: bool) -> Node:
        field = self._take() if self._word.kind == "name" else self._stop("expecting a field")
        if is_optional or not self._takes("("):
            return Select(operand, field.text, dot.at, is_optional)
        return Call(field.text, self._until(")"), dot.at, operand)

    def _until(self, closing: str) -> tuple[Node, ...]:
        """What stands between commas; a last comma may stand before the end."""
        found: list[Node] = []
        while not self._takes(closing):
            found.append(self.expression(_LOOSEST))
            if not self._is_at(closing):
                self.expect(",")
        return tuple(found)

    def _primary(self) -> Node:
        word = self._take()
        if word.kind == "value":
            return self._literal(word)
        if word.kind == "name":
            return self._name(word)
        if word.text == "(":
            inner = self.expression(_LOOSEST)
            self.expect(")")
            return inner
        if word.text == "[":
            return Items(self._until("]"), word.at)
        if word.text == "{":
            return self._entries(word)
        raise RuleBroken(f"Syntax error: mismatched input '{word.text}' expecting a value", word.at)

    def _literal(self, word: Word) -> Node:
        if word.value == LARGEST_INT + 1 and type(word.value) is int:
            raise RuleBroken(f"Syntax error: invalid int literal: {word.text}", word.at)
        return Literal(word.value, word.at)

    def _name(self, word: Word) -> Node:
        if word.text in _CONSTANTS:
            return Literal(_CONSTANTS[word.text], word.at)
        if word.text in NO_NAMES:
            raise RuleBroken(f"Syntax error: reserved identifier: {word.text}", word.at)
        if self._takes("("):
            return Call(word.text, self._until(")"), word.at)
        return Name(word.text, word.at)

    def _entries(self, opening: Word) -> Node:
        found: list[tuple[Node, Node]] = []
        while not self._takes("}"):
            key = self.expression(_LOOSEST)
            self.expect(":")
            found.append((key, self.expression(_LOOSEST)))
            if not self._is_at("}"):
                self.expect(",")
        return Entries(tuple(found), opening.at)
