"""Selectors as objects carry them."""

import pytest

from tessera.embedded.resources.label_selectors import check, matches, written

LABELS = {"app": "web", "tier": "front"}


def expression(key, operator, *values):
    return {"matchExpressions": [{"key": key, "operator": operator, "values": list(values)}]}


@pytest.mark.parametrize(
    ("selector", "is_matched"),
    [
        (None, False),
        ({}, True),
        ({"matchLabels": {"app": "web"}}, True),
        ({"matchLabels": {"app": "web", "other": "x"}}, False),
        (expression("app", "In", "web", "api"), True),
        (expression("app", "NotIn", "web"), False),
        (expression("absent", "NotIn", "web"), True),
        (expression("tier", "Exists"), True),
        (expression("tier", "DoesNotExist"), False),
        (expression("tier", "Unheard"), False),
    ],
)
def test_a_selector_matches_what_it_says(selector, is_matched):
    assert matches(selector, LABELS) is is_matched


def test_a_selector_is_written_as_people_write_it():
    selector = {"matchLabels": {"b": "2", "a": "1"}} | expression("c", "In", "y", "x")
    assert written(selector) == "a=1,b=2,c in (x,y)"
    assert written(expression("c", "DoesNotExist")) == "!c"
    assert written({}) == written(None) == "<none>"


def test_an_expression_with_values_that_mean_nothing_is_refused():
    found = check(expression("a", "Exists", "x"), "spec.selector")
    assert [cause.field for cause in found] == ["spec.selector.matchExpressions[0].values"]
