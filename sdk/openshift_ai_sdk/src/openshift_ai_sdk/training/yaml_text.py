"""YAML that Kubernetes and Python read alike.

PyYAML takes dates for dates and 22:30 for a number, which Kubernetes does not; and it leaves texts bare, such as 1e3
and y, that Kubernetes takes for a number and a truth. So what is read here are the types of Kubernetes, and whatever
might be taken for something else is written in quotes.
"""

import math
import re
from typing import Any, cast

import yaml

from .documents import Document

_PLAIN = re.compile(r"[A-Za-z/](?:[A-Za-z0-9_./@-]|:(?=[A-Za-z0-9/]))*")
_OTHER_BREAKS = re.compile(r"[\r\x85\u2028\u2029\ufeff]")
_WORDS = frozenset({"y", "n", "yes", "no", "on", "off", "true", "false", "null", "nan", "inf"})
_TIMESTAMP, _INT, _FLOAT, _VALUE = (f"tag:yaml.org,2002:{tag}" for tag in ("timestamp", "int", "float", "value"))
_NOT_IN_JSON = frozenset(f"tag:yaml.org,2002:{tag}" for tag in ("binary", "timestamp", "set", "omap", "pairs"))
MOST_PARTS = 200_000
"""Far more than an API server takes."""


class _Loader(yaml.SafeLoader):
    """Types are those of JSON."""


class _Dumper(yaml.SafeDumper):
    """No anchors, and quotes where there is a doubt."""

    def ignore_aliases(self, data: object) -> bool:  # noqa: ARG002 # asked for every part
        return True


def load_document(text: object) -> Document:
    """The one object in the text. Raises ValueError for what is none."""
    if not isinstance(text, str):
        raise ValueError(f"the YAML is {type(text).__name__}, expected a text")
    try:
        documents: list[object] = [one for one in yaml.load_all(text, Loader=_Loader) if one is not None]
    except (yaml.YAMLError, ValueError, LookupError, RecursionError) as error:
        raise ValueError(f"the YAML cannot be read: {' '.join(str(error).split())}") from error
    if len(documents) != 1:
        raise ValueError(f"the YAML has {len(documents)} documents, expected one MPIJob")
    if not isinstance(documents[0], dict):
        raise ValueError(
            f"the YAML is a {type(documents[0]).__name__}, expected a mapping with apiVersion, kind and spec"
        )
    if _size(cast(object, documents[0]), {}) > MOST_PARTS:
        raise ValueError(f"the YAML has aliases that make it endless, or more than {MOST_PARTS} parts, expected fewer")
    return cast(Document, documents[0])


def _size(part: object, known: dict[int, float]) -> float:
    """How many parts it has where each alias is written out. A part that is inside itself has no end."""
    if isinstance(part, dict):
        below = list(cast(dict[object, object], part).values())
    elif isinstance(part, list):
        below = cast(list[object], part)
    else:
        return 1
    key = id(cast(object, part))
    if key not in known:
        known[key] = math.inf
        known[key] = 1 + sum(_size(one, known) for one in below)
    return known[key]


def dump_document(document: Document) -> str:
    return yaml.dump(document, Dumper=_Dumper, sort_keys=False, default_flow_style=False, allow_unicode=True, width=120)


def _resolvers() -> dict[Any, Any]:
    """PyYAML's own, without dates, numbers to the base of sixty, and `=` as something else than a text."""
    kept: dict[Any, Any] = {}
    resolvers = cast(dict[Any, Any], yaml.SafeLoader.yaml_implicit_resolvers)
    for first, known in resolvers.items():
        kept[first] = [(tag, pattern) for tag, pattern in known if tag not in (_TIMESTAMP, _INT, _FLOAT, _VALUE)]
    return kept


def _constructors() -> dict[Any, Any]:
    """PyYAML's own, without those whose values JSON does not have: nobody could send them."""
    known = cast(dict[Any, Any], yaml.SafeLoader.yaml_constructors)
    return {tag: made for tag, made in known.items() if tag not in _NOT_IN_JSON}


def _represent_text(dumper: yaml.SafeDumper, text: str) -> yaml.ScalarNode:
    is_plain = _PLAIN.fullmatch(text) and text.lower() not in _WORDS
    is_block = "\n" in text and not _OTHER_BREAKS.search(text)
    style = None if is_plain else "|" if is_block else '"'
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style=style)  # pyright: ignore[reportUnknownMemberType]


_WHOLE = re.compile(r"[-+]?(?:0b[01_]+|0o[0-7_]+|0x[0-9a-fA-F_]+|0[0-7_]*|[1-9][0-9_]*)$")
_NUMBER = re.compile(
    r"[-+]?(?:[0-9][0-9_]*\.?[0-9_]*|\.[0-9][0-9_]*)(?:[eE][-+]?[0-9]+)?$|[-+]?\.(?:inf|Inf|INF)$|\.(?:nan|NaN|NAN)$"
)
_Loader.yaml_implicit_resolvers = _resolvers()
_Loader.yaml_constructors = _constructors()
_untyped: Any = _Loader
_untyped.add_implicit_resolver(_INT, _WHOLE, list("-+0123456789"))
_untyped.add_implicit_resolver(_FLOAT, _NUMBER, list("-+0123456789."))
_Dumper.add_representer(str, _represent_text)
