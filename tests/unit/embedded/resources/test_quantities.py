"""A quantity has one form in which it is kept."""

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tessera.embedded.refusals import ApiRefusal
from tessera.embedded.resources.quantities import canonical, canonicalise
from tessera.model.quantities import parse_quantity

SUFFIXES = st.sampled_from(["", "m", "k", "M", "G", "T", "Ki", "Mi", "Gi", "Ti", "e0", "e3", "E2", "e-2", "n", "u"])
BILLIONTH = Fraction(1, 10**9)


@st.composite
def quantities(draw: st.DrawFn) -> str:
    sign = draw(st.sampled_from(["", "+", "-"]))
    whole = draw(st.integers(0, 10**9))
    part = draw(st.sampled_from(["", ".5", ".25", ".001", ".0"]))
    return f"{sign}{whole}{part}{draw(SUFFIXES)}"


@given(quantities())
def test_the_canonical_form_means_the_same_to_a_billionth(quantity):
    exact = parse_quantity(quantity)
    kept = parse_quantity(canonical(quantity))
    assert abs(kept) >= abs(exact)
    assert abs(kept - exact) < BILLIONTH


@given(quantities())
def test_what_is_canonical_stays_as_it_is(quantity):
    assert canonical(canonical(quantity)) == canonical(quantity)


@pytest.mark.parametrize(
    ("written", "kept"),
    [
        ("8000", "8k"),
        (8000, "8k"),
        ("1500m", "1500m"),
        ("1024Mi", "1Gi"),
        ("1.5Gi", "1536Mi"),
        ("2000Ki", "2000Ki"),
        ("0.5Ki", "512"),
        ("0.9765625Ki", "1k"),
        ("0.0001Ki", "102400u"),
        (0.5, "500m"),
        (1e9, "1G"),
        ("1e3", "1e3"),
        ("1500e3", "1500e3"),
        ("0Mi", "0"),
        ("-1", "-1"),
        ("+5", "5"),
        ("0.1n", "1n"),
        ("1000E", "1000E"),
        (None, "0"),
    ],
)
def test_a_quantity_is_kept_in_the_largest_unit_that_says_the_same(written, kept):
    assert canonical(written) == kept


@pytest.mark.parametrize("nonsense", ["1x", "", "one", True, ["1"], "1.2.3"])
def test_what_is_no_quantity_is_a_bad_request(nonsense):
    with pytest.raises(ApiRefusal) as refusal:
        canonicalise({"cpu": nonsense}, "Pod")
    assert refusal.value.code == 400
    assert refusal.value.message.startswith('Pod in version "v1" cannot be handled as a Pod: quantities must match')
