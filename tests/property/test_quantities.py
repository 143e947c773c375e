from fractions import Fraction

from hypothesis import given
from hypothesis import strategies as st

from tessera.errors import InvalidQuantity
from tessera.model.quantities import bytes_of, milli_of, parse_quantity

SUFFIXES = {"": 1, "k": 10**3, "M": 10**6, "G": 10**9, "Ki": 2**10, "Mi": 2**20, "Gi": 2**30, "m": Fraction(1, 1000)}


@given(st.integers(0, 10**9), st.integers(0, 999), st.sampled_from(sorted(SUFFIXES)))
def test_a_quantity_means_what_its_digits_and_suffix_say(whole: int, thousandths: int, suffix: str) -> None:
    expected = (whole + Fraction(thousandths, 1000)) * SUFFIXES[suffix]

    assert parse_quantity(f"{whole}.{thousandths:03d}{suffix}") == expected


@given(st.integers(0, 10**12))
def test_nobody_gets_less_than_they_asked_for(milli: int) -> None:
    assert milli_of(f"{milli}m") == milli
    assert 0 <= bytes_of(f"{milli}m") * 1000 - milli < 1000


@given(st.text(max_size=80))
def test_any_text_is_an_amount_or_a_sentence(text: str) -> None:
    try:
        amount = bytes_of(text)
    except InvalidQuantity:
        return
    assert amount >= 0
