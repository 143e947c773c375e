"""Numbers and times as people read them."""

from datetime import datetime

UNKNOWN = "?"
NOTHING = "-"
_MINUTE_S, _HOUR_S, _DAY_S = 60, 3600, 86_400


def age(at: datetime | None, now: datetime) -> str:
    """How long ago, in the largest unit of which there are two: 90s, 5m, 3h, 12d."""
    if at is None:
        return UNKNOWN
    seconds = max(0, int((now - at).total_seconds()))
    for unit_s, letter in ((_DAY_S, "d"), (_HOUR_S, "h"), (_MINUTE_S, "m")):
        if seconds >= 2 * unit_s:
            return f"{seconds // unit_s}{letter}"
    return f"{seconds}s"


def memory(mib: int | None) -> str:
    """GiB from one on, with a tenth where it is not whole."""
    if mib is None:
        return UNKNOWN
    if mib < 1024:
        return f"{mib}Mi" if mib else "0"
    return f"{mib // 1024}Gi" if mib % 1024 == 0 else f"{mib / 1024:.1f}Gi"


def of(used: int | None, total: int, unit: str = "") -> str:
    return f"{UNKNOWN if used is None else used}/{total}{unit}"
