"""The functions and operators of CEL and those that Kubernetes adds, as far as our rules and our users' need them."""

from tessera.embedded.rules.library import conversions, lists, operators, optionals, quantities, texts, times
from tessera.embedded.rules.overloads import by_name

_SHELVES = (operators, conversions, texts, lists, optionals, quantities, times)
LIBRARY = by_name(overload for shelf in _SHELVES for overload in shelf.OVERLOADS)
"""Every overload by its name: `size`, `.size`, `_+_`, `optional.of`."""
