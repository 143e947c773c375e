"""Objects as they travel: JSON, decoded."""

from collections.abc import Mapping
from typing import Any

import msgspec

Document = dict[str, Any]
"""One that may be changed by whoever was given it as their own."""

Frozen = Mapping[str, Any]
"""One that others hold as well."""


def copied(value: Any) -> Any:
    """One of one's own. Several times faster than `copy.deepcopy`, and documents are JSON."""
    return msgspec.json.decode(msgspec.json.encode(value))
