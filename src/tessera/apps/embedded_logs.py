"""What the parts of the engine say, each in a log of its own, as if it were a container's.

So `kubectl logs` reads them like any other: with times, the last lines, or as they come.
"""

from contextlib import suppress
from pathlib import Path
from typing import Any, cast

import structlog

from tessera.embedded.runtime.log_files import LineStamper, LogFile

MOST_BYTES = 10 * 1024 * 1024
SCHEDULER, OPERATOR, AGENTS, ENGINE = "hami-scheduler", "tessera-operator", "hami-device-plugin", "tessera"
COMPONENTS = (SCHEDULER, OPERATOR, AGENTS, ENGINE)
SPEAKERS = {
    "tessera.scheduler": SCHEDULER,
    "tessera.admission": SCHEDULER,
    "tessera.operators": OPERATOR,
    "tessera.node": AGENTS,
}
"""Whose log it is, by the package that speaks; all else is the engine's."""


class ComponentLogs:
    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._files = {name: _Lines(self.path(name)) for name in COMPONENTS}

    def path(self, component: str) -> Path:
        return self._directory / f"{component}.log"

    def configure(self) -> None:
        """Let everything be said there from now on.

        A traceback is without the values in it: one of them is somebody's token.
        """
        structlog.configure(
            processors=[
                structlog.processors.add_log_level,
                structlog.dev.ConsoleRenderer(colors=False, exception_formatter=structlog.dev.plain_traceback),
            ],
            logger_factory=self._logger_for,
            cache_logger_on_first_use=True,
        )

    def _logger_for(self, module: str = "", *_: Any) -> structlog.PrintLogger:
        package = ".".join(module.split(".")[:2])
        return structlog.PrintLogger(cast("Any", self._files[SPEAKERS.get(package, ENGINE)]))


class _Lines:
    """A file to print to, as structlog wants one."""

    def __init__(self, path: Path) -> None:
        self._file = LogFile(str(path), MOST_BYTES)
        self._stamper = LineStamper("stderr")

    def write(self, text: str) -> None:
        """On a full disk nothing is said: what was to be logged matters more."""
        with suppress(OSError):
            self._file.write(self._stamper.take(text.encode(errors="replace")))

    def flush(self) -> None:
        """Nothing is held back."""
