"""Informers that are of use only together: they run side by side, and know nothing before all of them do."""

import asyncio
from typing import Any

from tessera.kube.informer import Informer


class InformerGroup:
    def __init__(self, *informers: Informer[Any]) -> None:
        self._informers = informers

    @property
    def is_synced(self) -> bool:
        return all(informer.is_synced for informer in self._informers)

    async def run(self) -> None:
        async with asyncio.TaskGroup() as group:
            for informer in self._informers:
                group.create_task(informer.run())
