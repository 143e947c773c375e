"""CEL, as text: the few questions that we let the API server answer by itself.

Every expression bears a pod in which parts are missing, or null as Go writes an empty list: CEL stops at what is not
there, and a request about which a condition fails is refused.
"""

from collections.abc import Iterable

TOKENS_NODES = "request.userInfo.?extra[?'authentication.kubernetes.io/node-name'].orValue([])"
"""The node that the user's token is bound to, as a list of one; of nobody else but pods and their likes."""


def quoted(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace("'", "\\'")
    return f"'{escaped}'"


def list_of(words: Iterable[str]) -> str:
    return f"[{', '.join(quoted(word) for word in words)}]"


def either(*expressions: str) -> str:
    return " || ".join(f"({expression})" for expression in expressions)


def is_one_of(field: str, words: Iterable[str]) -> str:
    return f"has({field}) && {field} in {list_of(words)}"


def has_annotation(thing: str, key: str) -> str:
    annotations = f"{thing}.metadata.annotations"
    return f"has({annotations}) && {quoted(key)} in {annotations}"


def asks_for(spec: str, resources: Iterable[str]) -> str:
    """Whether any container or init container names one of these resources in its limits or requests.

    Ours have a domain, which cpu and memory have not: that spares most pods a look at the whole list.
    """
    named = f"k.contains('/') && k in {list_of(resources)}"
    figures = ", ".join(f"c.?resources.?{field}.orValue({{}})" for field in ("limits", "requests"))
    groups = ", ".join(f"{spec}.?{field}.orValue([])" for field in ("initContainers", "containers"))
    asking = f"[{figures}].exists(figures, figures.exists(k, {named}))"
    return f"[{groups}].exists(group, group != null && group.exists(c, {asking}))"
