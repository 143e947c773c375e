"""What an ordinary user's engine can do: show a volume to a container and to a command beside it."""

import asyncio
import sys
from pathlib import Path

from tests.embedded.runtime.node import FOREVER, SHARE, SHARED, running_node


async def main(directory: str) -> None:
    async with running_node(Path(directory) / "runtime") as node:
        script = f"id -u; hostname; touch /shared/file; ls /shared; {FOREVER}"
        node.start(node.container(script, **SHARE), volumes=SHARED)
        while "file" not in await node.log():
            await asyncio.sleep(0.02)
        print(await node.log(), end="")
        print(await node.exec("ls", "/shared"))


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1]))
