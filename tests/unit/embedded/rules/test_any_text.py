"""Whatever text is given as a rule, it is one or is refused; whatever it is decided for, it answers or fails."""

from contextlib import suppress

from hypothesis import given
from hypothesis import strategies as st

from tessera.embedded.rules import RuleBroken, RuleFailed, compile_rule
from tessera.embedded.rules.library import LIBRARY
from tessera.embedded.rules.macros import MACROS
from tessera.embedded.rules.types import DYN
from tessera.embedded.rules.values import is_equal

FUNCTIONS = sorted({name.lstrip(".") for name in LIBRARY if "_" not in name} | {name.lstrip(".") for name, _ in MACROS})
OPERATORS = ["+", "-", "*", "/", "%", "<", "==", "in", "&&", "||"]
PIECES = [
    *("self", "x", "true", "null", "1", "-1", "0.5", "''", "'a'", "b'a'", "'1h'", "'2026-01-01T00:00:00Z'", "[]", "{}"),
    *("(", ")", "[", "]", "{", "}", ".", ".?", "[?", ",", ":", "?", "!", "!=", ">="),
    *OPERATORS,
    *FUNCTIONS,
]
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-5, 5) | st.floats(allow_nan=False) | st.text(max_size=3),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["a", "b"]), inner),
    max_leaves=6,
)
ATOMS = st.sampled_from(["self", "self.a", "self.?a", "self[?'b']", "1", "0.5", "'a'", "true", "null", "[]", "{}"])
EXPRESSIONS = st.recursive(
    ATOMS,
    lambda inner: st.one_of(
        st.builds("({} {} {})".format, inner, st.sampled_from(OPERATORS), inner),
        st.builds("({} ? {} : {})".format, inner, inner, inner),
        st.builds("[{}, {}]".format, inner, inner),
        st.builds("{{'k': {}}}".format, inner),
        st.builds("{}({})".format, st.sampled_from(FUNCTIONS), inner),
        st.builds("{}.{}({})".format, inner, st.sampled_from(FUNCTIONS), inner),
        st.builds("{}.{}()".format, inner, st.sampled_from(FUNCTIONS)),
        st.builds("{}.{}(x, {})".format, inner, st.sampled_from(["all", "exists", "map", "filter"]), inner),
        st.builds("{}[{}]".format, inner, inner),
    ),
    max_leaves=8,
)


def decide(text, value):
    return compile_rule(text, {"self": DYN}).evaluate({"self": value})


@given(st.text() | st.lists(st.sampled_from(PIECES), max_size=12).map(" ".join))
def test_any_text_is_a_rule_or_is_refused(text):
    with suppress(RuleBroken):
        compile_rule(text, {"self": DYN})


@given(EXPRESSIONS, VALUES)
def test_any_rule_answers_or_fails(text, value):
    with suppress(RuleBroken, RuleFailed):
        decide(text, value)


@given(st.text())
def test_a_string_that_is_written_as_a_literal_is_read_back(text):
    written = "".join(f"\\U{ord(letter):08x}" for letter in text)
    assert decide(f"'{written}'", None) == text


@given(VALUES, VALUES)
def test_equality_is_the_same_from_both_sides(one, other):
    assert is_equal(one, one)
    assert is_equal(one, other) == is_equal(other, one)


@given(st.integers(-(2**63), 2**63 - 1), st.integers(-(2**63), 2**63 - 1))
def test_a_quotient_and_its_remainder_give_the_number_again(one, other):
    try:
        found = decide(f"[{one} / {other}, {one} % {other}]", None)
    except RuleFailed:
        assert other == 0 or (one, other) == (-(2**63), -1)
        return
    assert found[0] * other + found[1] == one
    assert abs(found[1]) < abs(other)
