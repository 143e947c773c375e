"""What was found about a cluster, each in one sentence with what to do."""

from enum import StrEnum

from tessera.views.records import View


class Level(StrEnum):
    OK = "ok"
    WARNING = "warning"  # something is unknown, or will not last
    PROBLEM = "problem"  # pods do not get cards, or not as they should


class Finding(View, frozen=True, kw_only=True):
    """`check` is one word for what was looked at; `advice` is empty where nothing needs doing."""

    check: str
    level: Level
    sentence: str
    advice: str = ""


def ok(check: str, sentence: str) -> Finding:
    return Finding(check=check, level=Level.OK, sentence=sentence)


def warning(check: str, sentence: str, advice: str = "") -> Finding:
    return Finding(check=check, level=Level.WARNING, sentence=sentence, advice=advice)


def problem(check: str, sentence: str, advice: str = "") -> Finding:
    return Finding(check=check, level=Level.PROBLEM, sentence=sentence, advice=advice)


def named(names: list[str], most: int = 3) -> str:
    """The first few of them, and how many more there are."""
    shown = ", ".join(names[:most])
    return shown if len(names) <= most else f"{shown} and {len(names) - most} more"
