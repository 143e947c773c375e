"""Ways into what runs, with our own components among it: their logs are files of this process."""

import asyncio
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path

from tessera.apps.embedded_components import Components
from tessera.embedded.documents import Frozen
from tessera.embedded.doors.connecting import Connections
from tessera.embedded.doors.log_queries import is_asked, read_log_query
from tessera.embedded.doors.services import Services
from tessera.embedded.runtime.logs import read_log
from tessera.embedded.runtime.runtime import Runtime
from tessera.embedded.serving.answers import TEXT, Reply, Stream, Write


class EmbeddedDoors(Connections):
    def __init__(self, runtime: Runtime, services: Services, components: Components) -> None:
        super().__init__(runtime, services)
        self._components = components

    async def log(self, pod: Frozen, query: Mapping[str, str]) -> Reply:
        path = self._components.log_of(pod)
        return await super().log(pod, query) if path is None else _stream(path, pod, query)


def _stream(path: Path, pod: Frozen, query: Mapping[str, str]) -> Stream:
    """It ends with us, so whoever follows it follows it for good."""
    request = read_log_query(query, pod["metadata"]["name"], datetime.now(UTC))
    ended = asyncio.Event() if is_asked(query, "follow") else None

    async def run(write: Write) -> None:
        async for piece in read_log(path, request, ended):
            await write(piece)

    return Stream(run, content_type=TEXT)
