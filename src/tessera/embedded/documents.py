"""Objects as they travel: JSON, decoded."""

from collections.abc import Mapping
from typing import Any

Document = dict[str, Any]
"""One that may be changed by whoever was given it as their own."""

Frozen = Mapping[str, Any]
"""One that others hold as well."""
