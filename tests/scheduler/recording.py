"""A proxy between a scheduler and the API server that numbers its writes, and lets a chosen one go wrong.

It speaks plain HTTP to the scheduler, so that it sees where a request ends and an answer begins, and passes on as the
administrator. It runs in a thread of its own.
"""

import asyncio
import re
import threading
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from enum import StrEnum
from pathlib import Path
from types import TracebackType
from typing import NamedTuple, Self

import aiohttp
import yaml
from aiohttp import web

from tessera.kube.access import find_access
from tessera.kube.tls import make_context

WRITES = frozenset({"POST", "PUT", "PATCH", "DELETE"})
LARGEST = 64 * 2**20
OBJECT = re.compile(r"/(?:apis?)/.*?(?P<kind>pods|nodes|leases|events)(?:/[^/]+)?(?P<below>/[a-z]+)?$")
HOP_BY_HOP = frozenset({"transfer-encoding", "content-encoding", "content-length", "connection", "host"})


class Moment(StrEnum):
    """When the chosen write goes wrong."""

    BEFORE = "before the API server sees it"
    AFTER = "after it landed and before its answer is read"


class Fault(NamedTuple):
    """`write` is a name such as "POST pods/binding 2": the second of its kind. `happen` is what goes wrong."""

    write: str
    moment: Moment
    happen: Callable[[], None]


class RecordingProxy:
    """Use as `with`. `writes` are the names of all writes so far, in their order."""

    def __init__(self, kubeconfig: Path, directory: Path) -> None:
        self._access = find_access(kubeconfig)
        self.kubeconfig = directory / "by-way-of-a-recorder.kubeconfig"
        self.writes: list[str] = []
        self.faults: list[Fault] = []
        self.was_hit = threading.Event()
        self._counts: Counter[str] = Counter()
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever)

    def __enter__(self) -> Self:
        self._thread.start()
        asyncio.run_coroutine_threadsafe(self._start(), self._loop).result()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        asyncio.run_coroutine_threadsafe(self._stop(), self._loop).result()
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    def begin(self, *faults: Fault) -> None:
        """Count from the beginning again, with these faults ahead."""
        self.writes, self.faults = [], list(faults)
        self._counts.clear()
        self.was_hit.clear()

    async def _start(self) -> None:
        credential = await self._access.credentials.current()
        self._session = aiohttp.ClientSession(
            self._access.server,
            connector=aiohttp.TCPConnector(ssl=make_context(self._access.trust, credential.certificate), limit=0),
            timeout=aiohttp.ClientTimeout(total=None),
            auto_decompress=True,
        )
        app = web.Application(client_max_size=LARGEST)
        app.router.add_route("*", "/{path:.*}", self._pass_on)
        self._runner = web.AppRunner(app, shutdown_timeout=0, handler_cancellation=True)
        await self._runner.setup()
        site = web.TCPSite(self._runner, "127.0.0.1", 0)
        await site.start()
        port = self._runner.addresses[0][1]
        cluster = {"name": "recorded", "cluster": {"server": f"http://127.0.0.1:{port}"}}
        context = {"name": "recorded", "context": {"cluster": "recorded", "user": "nobody"}}
        users = [{"name": "nobody", "user": {}}]
        document = {"clusters": [cluster], "contexts": [context], "users": users, "current-context": "recorded"}
        self.kubeconfig.write_text(yaml.safe_dump({"apiVersion": "v1", "kind": "Config", **document}))

    async def _stop(self) -> None:
        await self._runner.cleanup()
        await self._session.close()

    async def _pass_on(self, request: web.Request) -> web.StreamResponse:
        body = await request.read()
        name = self._note(request) if request.method in WRITES else ""
        if self._goes_wrong(name, Moment.BEFORE):
            return _silence(request)
        headers = {key: value for key, value in request.headers.items() if key.lower() not in HOP_BY_HOP}
        async with self._session.request(request.method, request.raw_path, headers=headers, data=body) as answer:
            kept = {key: value for key, value in answer.headers.items() if key.lower() not in HOP_BY_HOP}
            if "watch=true" in request.query_string:
                return await _stream(request, answer, kept)
            content = await answer.read()
            if self._goes_wrong(name, Moment.AFTER):
                return _silence(request)
            return web.Response(status=answer.status, headers=kept, body=content)

    def _note(self, request: web.Request) -> str:
        found = OBJECT.search(request.path)
        what = f"{found['kind']}{found['below'] or ''}" if found else request.path
        kind = f"{request.method} {what}"
        self._counts[kind] += 1
        self.writes.append(f"{kind} {self._counts[kind]}")
        return self.writes[-1]

    def _goes_wrong(self, name: str, moment: Moment) -> bool:
        for fault in self.faults:
            if fault.write == name and fault.moment is moment:
                self.faults.remove(fault)
                fault.happen()
                self.was_hit.set()
                return True
        return False


async def _stream(request: web.Request, answer: aiohttp.ClientResponse, headers: dict[str, str]) -> web.StreamResponse:
    passed = web.StreamResponse(status=answer.status, headers=headers)
    with suppress(ConnectionError):  # whoever listened was killed
        await passed.prepare(request)
        async for chunk in answer.content.iter_any():
            await passed.write(chunk)
    return passed


def _silence(request: web.Request) -> web.Response:
    """The connection ends without an answer."""
    assert request.transport is not None
    request.transport.abort()
    return web.Response()
