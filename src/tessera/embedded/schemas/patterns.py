"""Regular expressions of schemas, which are written for Go, as Python reads them."""

import re

_CLASSES = {
    "alpha": "a-zA-Z",
    "digit": "0-9",
    "alnum": "0-9a-zA-Z",
    "upper": "A-Z",
    "lower": "a-z",
    "space": r"\s",
    "word": r"\w",
    "punct": r"!-/:-@\[-`{-~",
    "xdigit": "0-9a-fA-F",
}
_DIFFERENT = re.compile(r"\\z|\\.|\[:(\w+):\]|\[\^?\]?|\]|\$", re.DOTALL)


def compiled(pattern: str) -> re.Pattern[str]:
    """Raises `re.error` for what is no expression. `$` is the end of the text, before no last line break."""
    is_in_class = False

    def translated(match: re.Match[str]) -> str:
        nonlocal is_in_class
        text = match[0]
        if match[1]:
            return _CLASSES.get(match[1], text)
        if text.startswith("[") and not is_in_class:
            is_in_class = True
        elif text == "]":
            is_in_class = False
        elif text == "\\z" or (text == "$" and not is_in_class):
            return r"\Z"
        return text

    return re.compile(_DIFFERENT.sub(translated, pattern), re.ASCII)
