import pytest

from tessera.errors import InvalidQuantity
from tessera.model.quantities import LARGEST, bytes_of, count_of, milli_of


@pytest.mark.parametrize(
    ("text", "expected"),
    [("2", 2), (2, 2), ("2k", 2000), ("1e3", 1000), ("1E3", 1000), ("0", 0), ("+5", 5), ("2.0", 2), ("1E", 10**18)],
)
def test_a_count_is_a_whole_number_in_any_spelling(text: str | int, expected: int) -> None:
    assert count_of(text) == expected


@pytest.mark.parametrize(("text", "expected"), [("1.5", 1500), ("500m", 500), ("1", 1000), ("100u", 1), (0.25, 250)])
def test_cpu_is_counted_in_thousandths_rounded_up(text: str | float, expected: int) -> None:
    assert milli_of(text) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [("1Ki", 1024), ("1.5Gi", 3 * 2**29), ("128974848", 128974848), ("129e6", 129_000_000), ("1m", 1), (".5Ki", 512)],
)
def test_memory_is_counted_in_bytes_rounded_up(text: str, expected: int) -> None:
    assert bytes_of(text) == expected


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("", '"" is not a quantity, expected a number such as "2", "500m" or "1.5Gi"'),
        ("lots", '"lots" is not a quantity'),
        ("1 Gi", '"1 Gi" is not a quantity'),
        ("0x10", '"0x10" is not a quantity'),
        ("1Gib", '"1Gib" has the unknown unit "Gib", expected one of k, M, G'),
        ("-1", '"-1" is negative, expected zero or more'),
        ("9e99", f'"9e99" is too large, expected at most {LARGEST}'),
        ("1e9999", '"1e9999" is not a quantity'),
        (True, '"true" is not a quantity'),
        ("1" * 100, f'"{"1" * 37}..." is not a quantity'),
        ("nan", '"nan" is not a quantity'),
        ("٣", '"٣" is not a quantity'),
    ],
)
def test_what_is_no_amount_gives_one_sentence(text: str, sentence: str) -> None:
    with pytest.raises(InvalidQuantity) as caught:
        bytes_of(text)

    assert sentence in str(caught.value)


def test_half_a_card_cannot_be_counted() -> None:
    with pytest.raises(InvalidQuantity, match='"500m" is not a whole number, expected one such as "2"'):
        count_of("500m")
