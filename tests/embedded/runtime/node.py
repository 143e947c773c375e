"""A runtime with everything around it that tests need: pods from scripts, what became of them, what was told."""

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from tessera.embedded.runtime.logs import LogRequest
from tessera.embedded.runtime.restarts import Restarts
from tessera.embedded.runtime.runtime import Runtime, Wiring
from tessera.embedded.runtime.sources import Event
from tessera.embedded.runtime.surroundings import Settings

Object = dict[str, Any]
PATIENCE_S = 30.0
FOREVER = "trap 'exit 0' TERM; while :; do sleep 0.1; done"
SHARED: list[Object] = [{"name": "shared", "emptyDir": {}}]
SHARE: Object = {"volumeMounts": [{"name": "shared", "mountPath": "/shared"}]}
QUICK = Settings(restarts=Restarts(first_s=0.2, most_s=1.0), retry_s=0.05, refresh_s=0.1)


class Objects:
    """ConfigMaps and Secrets by name, in any namespace."""

    def __init__(self) -> None:
        self.config_maps: dict[str, Object] = {}
        self.secrets: dict[str, Object] = {}

    async def config_map(self, namespace: str, name: str) -> Object | None:  # noqa: ARG002
        return self.config_maps.get(name)

    async def secret(self, namespace: str, name: str) -> Object | None:  # noqa: ARG002
        return self.secrets.get(name)

    async def token(self, pod: Any, audience: str, expires_s: int) -> str:
        return f"token of {pod['metadata']['name']} for {audience or 'the API'} for {expires_s} s"


class Node:
    def __init__(self) -> None:
        self.runtime: Runtime
        self.objects = Objects()
        self.events: list[Event] = []
        self._stirred = asyncio.Event()

    def stir(self, *_: object) -> None:
        self._stirred.set()

    def hear(self, _: object, event: Event) -> None:
        self.events.append(event)
        self._stirred.set()

    def container(self, script: str, **more: Any) -> Object:
        return {"name": "main", "image": "tessera.local/machine", "command": ["sh", "-c", script], **more}

    def start(self, *what: str | Object, name: str = "worker", status: Object | None = None, **spec: Any) -> str:
        """Start a pod from scripts or whole containers; returns its uid."""
        containers = [self.container(one) if isinstance(one, str) else one for one in what]
        placed = {"restartPolicy": "Never", "terminationGracePeriodSeconds": 1, "nodeName": "node-a"}
        metadata = {"name": name, "namespace": "default", "uid": f"uid-{name}"}
        pod = {"metadata": metadata, "spec": placed | {"containers": containers} | spec, "status": status or {}}
        self.runtime.start(pod)
        return metadata["uid"]

    async def until(self, found: Callable[[], Any]) -> Any:
        async with asyncio.timeout(PATIENCE_S):
            while not (result := found()):
                self._stirred.clear()
                await self._stirred.wait()
        return result

    async def wait(self, condition: Callable[[Object], Any], name: str = "worker") -> Object:
        def found() -> Object | None:
            status = self.runtime.status(f"uid-{name}")
            return status if status and condition(status) else None

        return await self.until(found)

    async def run(self, *what: str | Object, **more: Any) -> str:
        """Everything that a pod printed, once it has succeeded."""
        self.start(*what, **more)
        ended = await self.wait(has_ended)
        printed = await self.log()
        assert ended["phase"] == "Succeeded", (printed, ended, self.events)
        return printed

    async def log(self, container: str = "main", *, name: str = "worker", **more: Any) -> str:
        chosen = self.runtime.container(f"uid-{name}", container)
        assert chosen is not None
        options = {key: more.pop(key) for key in ("previous", "follow") if key in more}
        pieces = [piece async for piece in self.runtime.read_log(chosen, LogRequest(**more), **options)]
        return b"".join(pieces).decode()

    async def exec(self, *command: str, stdin: bytes | None = None) -> tuple[int, str]:
        container = self.runtime.container("uid-worker", "main")
        assert container is not None
        session = await self.runtime.exec(container, command, stdin=stdin is not None)
        if stdin is not None:
            session.send(stdin)
            session.end_input()
        printed = b"".join([chunk async for chunk in session.stdout])
        complaints = b"".join([chunk async for chunk in session.stderr])
        return await session.wait(), (printed + complaints).decode()

    def reasons(self) -> Sequence[str]:
        return [event.reason for event in self.events]


@asynccontextmanager
async def running_node(directory: Path, settings: Settings = QUICK, **wiring: Any) -> AsyncIterator[Node]:
    node = Node()
    wired = Wiring(sources=node.objects, changed=node.stir, hear=node.hear, **wiring)
    node.runtime = await Runtime.open(directory, wired, settings=settings)
    try:
        yield node
    finally:
        await node.runtime.close()


def has_ended(status: Object) -> bool:
    return status["phase"] in ("Succeeded", "Failed")


def is_running(status: Object) -> bool:
    return status["phase"] == "Running"


def is_ready(status: Object) -> bool:
    return condition(status, "Ready") == "True"


def condition(status: Object, kind: str) -> str:
    return next((one["status"] for one in status.get("conditions", ()) if one["type"] == kind), "Unknown")


def state_of(status: Object, index: int = 0) -> Object:
    return status["containerStatuses"][index]["state"]


def was_restarted(status: Object) -> bool:
    return any(one["restartCount"] for one in status["containerStatuses"])
