"""The cluster that a command is about, and where its log goes: people read stderr, programs read stdout."""

import logging
import re
import sys
from collections.abc import AsyncGenerator, MutableMapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import structlog

from tessera.kube.access import find_access
from tessera.kube.client import Client
from tessera.kube.transport import Limits

_REQUEST = re.compile(r"^(watch|list) [^:]*: ")


@asynccontextmanager
async def reached(
    kubeconfig: Path | None, context: str | None, *, limits: Limits | None = None
) -> AsyncGenerator[Client]:
    """A client for as long as the block lasts."""
    structlog.configure(
        processors=[Sentences()],
        wrapper_class=structlog.make_filtering_bound_logger(logging.WARNING),
        logger_factory=structlog.PrintLoggerFactory(sys.stderr),
    )
    async with Client(find_access(kubeconfig, context=context), limits=limits) as client:
        yield client


class Sentences:
    """Warnings as people read them: one sentence each, and none twice, whichever request it befalls."""

    def __init__(self) -> None:
        self._said = set[str]()

    def __call__(self, _: object, __: str, entry: MutableMapping[str, Any]) -> str:
        failure = sys.exc_info()[1] if entry.get("exc_info") else None
        why = _REQUEST.sub("", str(entry.get("error") or entry.get("problem") or failure or ""))
        where = f" {entry['key']}" if "key" in entry else ""
        sentence = f"tessera: {entry['event']}{where}" + (f": {why}" if why else "")
        if sentence in self._said:
            raise structlog.DropEvent
        self._said.add(sentence)
        return sentence
