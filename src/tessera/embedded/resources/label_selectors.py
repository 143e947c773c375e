"""Label selectors as objects carry them: matchLabels and matchExpressions.

The text form of queries belongs to `serving`; here only what is stored is checked, matched and written out.
"""

from collections.abc import Mapping
from typing import Any

from tessera.embedded import causes
from tessera.embedded.documents import Frozen
from tessera.embedded.refusals import Cause
from tessera.embedded.resources import names
from tessera.embedded.resources.parts import each, inside

_SETS = ("In", "NotIn")
_EXISTENCE = ("Exists", "DoesNotExist")


def matches(selector: Frozen | None, labels: Mapping[str, str] | None) -> bool:
    """Whether everything that the selector says holds; an empty one matches all, an absent one nothing."""
    if selector is None:
        return False
    labels = labels or {}
    wanted: Mapping[str, str] = inside(selector, "matchLabels")
    if any(labels.get(key) != value for key, value in wanted.items()):
        return False
    return all(_holds(expression, labels) for expression in each(selector, "matchExpressions"))


def is_empty(selector: Frozen) -> bool:
    return not selector.get("matchLabels") and not selector.get("matchExpressions")


def check(selector: Frozen, field: str) -> list[Cause]:
    found: list[Cause] = []
    wanted: Mapping[str, str] = inside(selector, "matchLabels")
    for key, value in wanted.items():
        found += [causes.invalid(f"{field}.matchLabels", key, sentence) for sentence in names.qualified(key)]
        found += [causes.invalid(f"{field}.matchLabels", value, sentence) for sentence in names.label_value(value)]
    for number, expression in enumerate(each(selector, "matchExpressions")):
        found += _check_expression(expression, f"{field}.matchExpressions[{number}]")
    return found


def _check_expression(expression: Frozen, field: str) -> list[Cause]:
    operator, values, key = expression.get("operator"), expression.get("values"), expression.get("key", "")
    found: list[Cause] = []
    if operator in _SETS and not values:
        found.append(causes.required(f"{field}.values", "must be specified when `operator` is 'In' or 'NotIn'"))
    elif operator in _EXISTENCE and values:
        detail = "may not be specified when `operator` is 'Exists' or 'DoesNotExist'"
        found.append(causes.forbidden(f"{field}.values", detail))
    elif operator not in (*_SETS, *_EXISTENCE):
        found.append(causes.invalid(f"{field}.operator", operator or "", "not a valid selector operator"))
    return found + [causes.invalid(f"{field}.key", key, sentence) for sentence in names.qualified(key)]


def written(selector: Frozen | None) -> str:
    """As people and queries write it: `app=web,tier in (a,b)`; `<none>` where nothing is selected by."""
    if selector is None or is_empty(selector):
        return "<none>"
    wanted: Mapping[str, str] = inside(selector, "matchLabels")
    parts = [f"{key}={wanted[key]}" for key in sorted(wanted)]
    parts += [_written(expression) for expression in each(selector, "matchExpressions")]
    return ",".join(parts)


def _written(expression: Frozen) -> str:
    key, operator = expression["key"], expression.get("operator")
    if operator == "Exists":
        return str(key)
    if operator == "DoesNotExist":
        return f"!{key}"
    values = ",".join(sorted(each(expression, "values")))
    return f"{key} {'in' if operator == 'In' else 'notin'} ({values})"


def _holds(expression: Frozen, labels: Mapping[str, str]) -> bool:
    key: str = expression.get("key", "")
    values: Any = each(expression, "values")
    match expression.get("operator"):
        case "In":
            return labels.get(key) in values
        case "NotIn":
            return labels.get(key) not in values
        case "Exists":
            return key in labels
        case "DoesNotExist":
            return key not in labels
        case _:
            return False
