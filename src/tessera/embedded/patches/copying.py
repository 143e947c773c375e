"""A document of one's own: what is patched must not change in the hands of others."""

from typing import Any

import msgspec


def copied(value: Any) -> Any:
    """Several times faster than `copy.deepcopy`, and all that is patched is JSON."""
    return msgspec.json.decode(msgspec.json.encode(value))
