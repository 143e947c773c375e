"""How a job looks in a notebook. Everything that is shown comes from somewhere else, and is escaped."""

import html
import sys
import time
from collections.abc import Mapping
from typing import Any, Callable, Optional

from .statuses import FAILED, PENDING, RUNNING, SUCCEEDED, Status

COLOURS = {PENDING: "#b58900", RUNNING: "#268bd2", SUCCEEDED: "#2e8b57", FAILED: "#c0392b"}


def job_table(values: Mapping[str, Any], status: Optional[Status]) -> str:
    """For `_repr_html_`. It asks nobody: the status is the one that was last seen."""
    rows: list[tuple[str, object]] = [
        ("namespace", values["namespace"]),
        ("image", values["image"]),
        ("workers", f"{values['workers']} × {values['slots_per_worker']} slots"),
        ("resources", values["resources"]),
        ("command", " ".join(str(word) for key in ("command", "args") for word in values[key] or ())),
    ]
    shown = "".join(f"<tr><th>{escape(key)}</th><td>{escape(value)}</td></tr>" for key, value in rows if value)
    return f"<div><b>MPIJob {escape(values['name'])}</b> {_badge(status)}<table>{shown}</table></div>"


def explanation_table(cause: str, verdict: str, fix: str, evidence: tuple[str, ...]) -> str:
    rows = [("cause", cause), ("fix", fix), *(("seen", line) for line in evidence)]
    shown = "".join(f"<tr><th>{escape(key)}</th><td>{escape(value)}</td></tr>" for key, value in rows)
    return f"<div><b>{escape(verdict)}</b><table>{shown}</table></div>"


def escape(value: object) -> str:
    return html.escape(str(value), quote=True)


def progress_teller(job: str) -> Callable[[Status], None]:
    """Writes a line whenever the status changes; in a notebook one line that changes."""
    began_s = time.monotonic()
    shown: dict[str, Any] = {}

    def tell(status: Status) -> None:
        line = f"{job}: {status.value} after {time.monotonic() - began_s:.0f} s ({status.detail})"
        if not _shown_in_notebook(shown, line, status):
            print(line, file=sys.stderr, flush=True)

    return tell


def value_teller(callback: Callable[[str], None]) -> Callable[[Status], None]:
    """Calls back with one of the four words when it is another one. What is behind it may change more often."""
    told: list[str] = []

    def tell(status: Status) -> None:
        if told != [status.value]:
            told[:] = [status.value]
            callback(status.value)

    return tell


def _shown_in_notebook(shown: dict[str, Any], line: str, status: Status) -> bool:
    """IPython is not a dependency: where it runs, somebody has loaded it."""
    ipython: Any = sys.modules.get("IPython")
    if ipython is None or ipython.get_ipython() is None:
        return False
    display: Any = sys.modules.get("IPython.display")
    if display is None:
        return False
    content = display.HTML(f"{_badge(status)} {escape(line)}")
    if "handle" in shown:
        shown["handle"].update(content)
    else:
        shown["handle"] = display.display(content, display_id=True)
    return True


def _badge(status: Optional[Status]) -> str:
    if status is None:
        return ""
    colour = COLOURS.get(status.value, "#666")
    return f'<span style="color:{colour}" title="{escape(status.detail)}">{escape(status.value)}</span>'
