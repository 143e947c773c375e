"""An engine to be killed: a runtime in the given directory, whose pods hide from it as well as they can.

Run with the directory, a word that all their processes carry, and whether control groups may be used.
"""

import asyncio
import sys
from pathlib import Path

from tessera.embedded.runtime.cgroups import Cgroups
from tests.embedded.runtime.node import is_running, running_node

HIDING = """
import os, signal, sys, time
for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT):
    signal.signal(number, signal.SIG_IGN)
for _ in range(2):
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            os.setsid()
            time.sleep(600)
        os._exit(0)
    os.wait()
print("hidden", flush=True)
time.sleep(600)
"""


async def main(directory: str, word: str, with_cgroups: bool) -> None:
    if not with_cgroups:
        Cgroups.find = lambda name: Cgroups(())  # noqa: ARG005
    async with running_node(Path(directory)) as node:
        node.start({"name": "main", "image": "x", "command": ["python3", "-c", HIDING, word]})
        await node.wait(is_running)
        while "hidden" not in await node.log():
            await asyncio.sleep(0.02)
        container = node.runtime.container("uid-worker", "main")
        assert container is not None
        session = await node.runtime.exec(container, ["python3", "-c", HIDING, word])
        assert await anext(aiter(session.stdout)) == b"hidden\n"
        print("ready", flush=True)
        await asyncio.sleep(600)


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], sys.argv[2], sys.argv[3] == "cgroups"))
