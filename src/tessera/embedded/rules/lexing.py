"""From characters to words."""

import re
from collections.abc import Iterator
from typing import Any, NamedTuple

from tessera.embedded.rules.mistakes import RuleBroken
from tessera.embedded.rules.values import LARGEST_INT

_WORD = re.compile(
    r"""
    (?P<space>(?:\s|//[^\n]*)+)
  | (?P<raw>(?:[rR][bB]?|[bB][rR])(?:'''[\s\S]*?'''|\"\"\"[\s\S]*?\"\"\"|'[^'\n]*'|"[^"\n]*"))
  | (?P<text>[bB]?(?:'''(?:\\[\s\S]|[^\\])*?'''|\"\"\"(?:\\[\s\S]|[^\\])*?\"\"\"
              |'(?:\\.|[^'\\\n])*'|"(?:\\.|[^"\\\n])*"))
  | (?P<double>(?:[0-9]*\.[0-9]+(?:[eE][+-]?[0-9]+)?|[0-9]+[eE][+-]?[0-9]+)(?![A-Za-z0-9_]))
  | (?P<int>(?:0[xX][0-9a-fA-F]+|[0-9]+)(?![A-Za-z0-9_]))
  | (?P<name>[A-Za-z_][A-Za-z0-9_]*)
  | (?P<sign>&&|\|\||[=!<>]=|\.\?|\[\?|[-+*/%<>!?:.,()\[\]{}])
    """,
    re.VERBOSE,
)
_ESCAPE = re.compile(
    r"\\(?:([abfnrtv\\'\"`?])|x([0-9a-fA-F]{2})|u([0-9a-fA-F]{4})|U([0-9a-fA-F]{8})|([0-3][0-7]{2})|)", re.S
)
_ESCAPED = {"a": "\a", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v"}


class Word(NamedTuple):
    """`kind` is name, sign, value or end; `text` of a value is for refusals, `value` for use."""

    kind: str
    text: str
    at: int
    value: Any = None


def words_of(text: str) -> Iterator[Word]:
    """Every word in order, and the end."""
    at = 0
    while at < len(text):
        match = _WORD.match(text, at)
        if match is None:
            raise RuleBroken(f"Syntax error: token recognition error at: '{text[at]}'", at)
        kind, found = str(match.lastgroup), match[0]
        if kind in ("name", "sign"):
            yield Word(kind, found, at)
        elif kind != "space":
            yield Word("value", found, at, _value(kind, found, at))
        at = match.end()
    yield Word("end", "<EOF>", at)


def _value(kind: str, text: str, at: int) -> Any:
    if kind == "double":
        return float(text)
    if kind == "int":
        return _int(text, at)
    prefix = text[: min(text.find(quote) for quote in "'\"" if quote in text)].lower()
    quoted = text[len(prefix) :]
    width = 3 if quoted[:3] in ("'''", '"""') and len(quoted) > 5 else 1
    inner = quoted[width:-width]
    if "b" in prefix:
        return _bytes(inner, at, is_raw=kind == "raw")
    return inner if kind == "raw" else _unescaped(inner, at)


def _int(text: str, at: int) -> int:
    number = int(text, 16) if text[:2] in ("0x", "0X") else int(text) if len(text) < 20 else LARGEST_INT + 2
    if number > LARGEST_INT + 1:  # the one more is for a minus before it
        raise RuleBroken(f"Syntax error: invalid int literal: {text}", at)
    return number


def _unescaped(text: str, at: int) -> str:
    def one(match: re.Match[str]) -> str:
        plain, octal = match[1], match[5]
        if plain:
            return _ESCAPED.get(plain, plain)
        code = int(octal, 8) if octal else int(match[2] or match[3] or match[4] or "-1", 16)
        if not 0 <= code <= 0x10FFFF or 0xD800 <= code < 0xE000:
            raise RuleBroken(f"Syntax error: a string has the unknown escape {text[match.start() :][:10]}", at)
        return chr(code)

    return _ESCAPE.sub(one, text)


def _bytes(text: str, at: int, *, is_raw: bool) -> bytes:
    if is_raw:
        return text.encode()
    if re.search(r"\\[uU]", text):
        raise RuleBroken("Syntax error: bytes have no \\u escapes, expected \\x", at)
    # An escape is one byte, everything else is UTF-8.
    parts = re.split(r"(\\(?:x[0-9a-fA-F]{2}|[0-3][0-7]{2}|[\s\S]))", text)
    return b"".join(
        _unescaped(part, at).encode("latin-1") if index % 2 else part.encode() for index, part in enumerate(parts)
    )
