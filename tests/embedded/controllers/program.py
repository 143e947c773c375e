"""The controllers as a process of their own, for tests that end it at any moment."""

import asyncio
import sys
from pathlib import Path

import uvloop

from tessera.embedded.controllers import nodes
from tessera.embedded.controllers.running import CONNECTIONS, Controllers
from tessera.kube.access import find_access
from tessera.kube.client import Client
from tessera.kube.transport import Limits


async def run(kubeconfig: Path, authority: Path) -> None:
    client = Client(find_access(kubeconfig), limits=Limits(connections=CONNECTIONS))
    async with client, asyncio.TaskGroup() as group:
        for work in Controllers(client, authority.read_bytes()).works():
            group.create_task(work)


if __name__ == "__main__":
    nodes.ORPHANED_S = 1.0  # nobody waits for a node that long here
    uvloop.run(run(Path(sys.argv[1]), Path(sys.argv[2])))
