"""Quantities as Kubernetes writes them: "500m", "16Gi", "1e3"."""

import re
from decimal import Decimal
from typing import Optional

# The grammar of resource.Quantity: a signed decimal number, then a power of two, a power of ten, or an exponent.
_QUANTITY = re.compile(
    r"(?P<number>[+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+))"
    r"(?:[eE](?P<exponent>[+-]?[0-9]{1,4})|(?P<suffix>[KMGTPE]i|[numkMGTPE]?))"
)
_MULTIPLIERS = {
    "n": Decimal("1e-9"),
    "u": Decimal("1e-6"),
    "m": Decimal("1e-3"),
    "": Decimal(1),
    **{suffix: Decimal(1000) ** power for power, suffix in enumerate("kMGTPE", start=1)},
    **{f"{suffix}i": Decimal(1024) ** power for power, suffix in enumerate("KMGTPE", start=1)},
}
_BINARY = (("Ti", 1024**4), ("Gi", 1024**3), ("Mi", 1024**2), ("Ki", 1024))


def parse_quantity(quantity: object) -> Optional[Decimal]:
    """Its value, or None for what is no quantity. YAML has numbers too."""
    text = str(quantity) if isinstance(quantity, (int, float)) and not isinstance(quantity, bool) else quantity
    match = _QUANTITY.fullmatch(text) if isinstance(text, str) else None
    if match is None:
        return None
    if match["exponent"] is not None:
        return Decimal(f"{match['number']}e{match['exponent']}")
    return Decimal(match["number"]) * _MULTIPLIERS[match["suffix"]]


def show_quantity(value: Decimal) -> str:
    """Short, and exact: 16Gi and not 17179869184."""
    if value == value.to_integral_value():
        whole = int(value)
        unit, size = next(((unit, size) for unit, size in _BINARY if whole and whole % size == 0), ("", 1))
        return f"{whole // size}{unit}"
    return f"{(value * 1000).normalize():f}m"
