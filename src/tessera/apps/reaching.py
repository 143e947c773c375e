"""The cluster that a command is about, and where its log goes: people read stderr, programs read stdout."""

import logging
import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

import structlog

from tessera.kube.access import find_access
from tessera.kube.client import Client
from tessera.kube.transport import Limits


@asynccontextmanager
async def reached(
    kubeconfig: Path | None, context: str | None, *, limits: Limits | None = None
) -> AsyncGenerator[Client]:
    """A client for as long as the block lasts."""
    _log_to_stderr()
    async with Client(find_access(kubeconfig, context=context), limits=limits) as client:
        yield client


def _log_to_stderr() -> None:
    structlog.configure(
        wrapper_class=structlog.make_filtering_bound_logger(logging.WARNING),
        logger_factory=structlog.PrintLoggerFactory(sys.stderr),
    )
