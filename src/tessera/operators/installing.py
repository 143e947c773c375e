"""Our kinds, told to an API server where no chart has done it: on this machine, and in tests."""

import asyncio
from collections.abc import Sequence
from typing import Any

from tessera.errors import NotReady
from tessera.kube.client import Client
from tessera.kube.kinds import CUSTOM_RESOURCE_DEFINITIONS
from tessera.kube.objects import Document
from tessera.model.definitions import load_definitions

ESTABLISHED_S = 30.0
LOOK_AGAIN_S = 0.05


async def install_definitions(client: Client, manager: str, others: Sequence[Document] = ()) -> None:
    """Make ours as they come with this version, and `others`; wait until they are served. Objects of theirs stay."""
    definitions = (*load_definitions(), *others)
    applied = [await _apply(client, definition, manager) for definition in definitions]
    await asyncio.gather(*(_until_established(client, one) for one in applied))


async def _apply(client: Client, definition: Document, manager: str) -> Document:
    name: str = definition["metadata"]["name"]
    return await client.apply(CUSTOM_RESOURCE_DEFINITIONS, name, definition, manager=manager, force=True)


async def _until_established(client: Client, definition: Document) -> None:
    name: str = definition["metadata"]["name"]
    try:
        async with asyncio.timeout(ESTABLISHED_S):
            while not _is_established(definition):
                await asyncio.sleep(LOOK_AGAIN_S)
                definition = await client.get(CUSTOM_RESOURCE_DEFINITIONS, name)
    except TimeoutError:
        raise NotReady(f"{name} is not served after {ESTABLISHED_S:.0f} s; see kubectl describe crd {name}") from None


def _is_established(definition: Document) -> bool:
    status: dict[str, Any] = definition.get("status") or {}
    return any(one["type"] == "Established" and one["status"] == "True" for one in status.get("conditions") or ())
