"""The embedded API server over TLS: creates, a long list, many watchers, and what the process weighs.

Clients keep their connections and send the next request when the last one is answered. Floors, in the same run: an ASGI
app that reads a body and says ok, served the same way; and the store alone, each write waited for until it is durable.
"""

import asyncio
import json
import ssl
import subprocess
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from statistics import quantiles

import uvloop
import yaml
from starlette.types import Receive, Scope, Send

from benchmarks.memory import proportional_bytes
from tessera.apps.serving import Listener, serve_all
from tessera.embedded.store import Key, Store

PORT, FLOOR_PORT = 18_443, 18_444
CLIENTS = 16
CREATED, LISTED = 3_000, 10_000
WATCHERS, RATE, WATCHED_S = 100, 50, 10
PODS = "/api/v1/namespaces/default/pods"


def a_pod(name: str) -> bytes:
    limits = {"nvidia.com/gpu": "1", "nvidia.com/gpumem": "8192"}
    container = {"name": "main", "image": "registry.invalid/none", "resources": {"limits": limits}}
    spec = {"containers": [container], "schedulerName": "nobody"}
    return json.dumps({"metadata": {"name": name, "labels": {"app": "bench"}}, "spec": spec}).encode()


class Connection:
    """One keep-alive client."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, headers: str) -> None:
        self._reader = reader
        self._writer = writer
        self._headers = headers

    @classmethod
    async def open(cls, port: int, trust: Path, token: str) -> "Connection":
        context = ssl.create_default_context(cafile=str(trust))
        reader, writer = await asyncio.open_connection("127.0.0.1", port, ssl=context, limit=2**26)
        return cls(reader, writer, f"Host: 127.0.0.1\r\nAuthorization: Bearer {token}\r\nAccept: application/json\r\n")

    async def ask(self, method: str, path: str, body: bytes = b"") -> bytes:
        self._send(method, path, body)
        head = await self._reader.readuntil(b"\r\n\r\n")
        length = int(head.lower().partition(b"content-length: ")[2].partition(b"\r\n")[0])
        answer = await self._reader.readexactly(length)
        assert head[9:10] == b"2", answer
        return answer

    async def lines(self, path: str) -> AsyncIterator[bytes]:
        """Of a watch, out of its chunks."""
        self._send("GET", path)
        await self._reader.readuntil(b"\r\n\r\n")
        rest = b""
        while size := int(await self._reader.readline(), 16):
            rest += await self._reader.readexactly(size)
            await self._reader.readexactly(2)
            *whole, rest = rest.split(b"\n")
            for line in whole:
                yield line

    def _send(self, method: str, path: str, body: bytes = b"") -> None:
        about = f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n" if body else ""
        self._writer.write(f"{method} {path} HTTP/1.1\r\n{self._headers}{about}\r\n".encode() + body)

    def close(self) -> None:
        self._writer.close()


@asynccontextmanager
async def connections(count: int, state: Path, port: int = PORT) -> AsyncIterator[Sequence[Connection]]:
    token = yaml.safe_load((state / "kubeconfig").read_text())["users"][0]["user"]["token"]
    opened = [await Connection.open(port, state / "ca.crt", token) for _ in range(count)]
    try:
        yield opened
    finally:
        for connection in opened:
            connection.close()


async def creates_per_s(state: Path, port: int, names: Sequence[str]) -> float:
    waiting = iter(names)

    async def work(connection: Connection) -> None:
        for name in waiting:
            await connection.ask("POST", PODS, a_pod(name))

    async with connections(CLIENTS, state, port) as opened:
        began = time.perf_counter()
        await asyncio.gather(*(work(connection) for connection in opened))
        return len(names) / (time.perf_counter() - began)


async def time_list(state: Path) -> float:
    async with connections(1, state) as (connection,):
        began = time.perf_counter()
        listed = await connection.ask("GET", PODS)
        seconds = time.perf_counter() - began
        assert len(json.loads(listed)["items"]) >= LISTED
        return seconds


async def watch(state: Path) -> list[float]:
    """How late each event came at each watcher, all in order."""
    async with connections(WATCHERS + 1, state) as (creator, *watchers):
        start = json.loads(await creator.ask("GET", f"{PODS}?limit=1"))["metadata"]["resourceVersion"]
        count, sent = RATE * WATCHED_S, dict[str, float]()

        async def follow(connection: Connection) -> list[float]:
            late, versions = list[float](), list[int]()
            async for line in connection.lines(f"{PODS}?watch=1&resourceVersion={start}"):
                arrived = time.perf_counter()
                meta = json.loads(line)["object"]["metadata"]
                versions.append(int(meta["resourceVersion"]))
                late.append(arrived - sent[meta["name"]])
                if len(late) == count:
                    break
            assert versions == sorted(set(versions)), "out of order"
            return late

        following = [asyncio.ensure_future(follow(connection)) for connection in watchers]
        for number in range(count):
            name = f"watched-{number}"
            sent[name] = time.perf_counter()
            await creator.ask("POST", PODS, a_pod(name))
            await asyncio.sleep(max(0.0, sent[name] + 1 / RATE - time.perf_counter()))
        return [seconds for late in await asyncio.gather(*following) for seconds in late]


async def store_writes_per_s(directory: Path) -> float:
    store = Store.open(directory / "floor.db")
    pods = [json.loads(a_pod(f"pod-{number}")) for number in range(CREATED)]
    waiting = iter(pods)

    async def work() -> None:
        for pod in waiting:
            store.put(Key("pods", "default", pod["metadata"]["name"]), pod, expected=None)
            await store.settled()

    began = time.perf_counter()
    await asyncio.gather(*(work() for _ in range(CLIENTS)))
    seconds = time.perf_counter() - began
    store.close()
    return len(pods) / seconds


async def say_ok(_: Scope, receive: Receive, send: Send) -> None:
    while (await receive()).get("more_body"):
        continue
    await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"2")]})
    await send({"type": "http.response.body", "body": b"ok"})


async def serve_floor(state: Path) -> None:
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(state / "tls.crt", state / "tls.key")
    await serve_all(Listener(say_ok, "127.0.0.1", FLOOR_PORT, context))


def wait_for(port: int, process: subprocess.Popen[bytes]) -> None:
    while process.poll() is None:
        with open("/proc/net/tcp") as listening:
            if f":{port:04X} 00000000:0000 0A" in listening.read():
                return
        time.sleep(0.01)
    sys.exit("embedded_api: the server ended before it listened")


async def measure(state: Path, server: int) -> None:
    print(f"  idle, proportional set size        {proportional_bytes(server) / 1e6:8.0f} MB")
    rate = await creates_per_s(state, PORT, [f"pod-{number}" for number in range(CREATED)])
    print(f"  pods created, {CLIENTS} clients           {rate:8.0f} /s", flush=True)
    rest = [f"pod-{number}" for number in range(CREATED, LISTED)]
    await creates_per_s(state, PORT, rest)
    print(f"  list of {LISTED} pods               {await time_list(state):8.3f} s")
    print(f"  with them                          {proportional_bytes(server) / 1e6:8.0f} MB", flush=True)
    cuts = quantiles(await watch(state), n=100)
    told = f"{WATCHERS} watchers at {RATE}/s, in order"
    print(f"  {told:34} {cuts[49] * 1e3:8.1f} ms p50, {cuts[98] * 1e3:.1f} ms p99 from create to event", flush=True)


def main() -> None:
    print("the embedded API server, over TLS")
    with tempfile.TemporaryDirectory() as directory:
        state = Path(directory)
        command = [sys.executable, "-m", "tessera.apps.api_server", "--state-dir", directory, "--port", str(PORT)]
        began = time.perf_counter()
        with subprocess.Popen(command) as server:
            try:
                wait_for(PORT, server)
                print(f"  from nothing to serving            {time.perf_counter() - began:8.2f} s")
                uvloop.run(measure(state, server.pid))
            finally:
                server.terminate()
        with subprocess.Popen([sys.executable, "-m", "benchmarks.embedded_api", directory]) as floor:
            try:
                wait_for(FLOOR_PORT, floor)
                rate = uvloop.run(creates_per_s(state, FLOOR_PORT, [str(number) for number in range(CREATED)]))
                print(f"  floor: an app that says ok         {rate:8.0f} /s")
            finally:
                floor.terminate()
        print(f"  floor: the store alone             {uvloop.run(store_writes_per_s(state)):8.0f} /s")


if __name__ == "__main__":
    if len(sys.argv) > 1:
        uvloop.run(serve_floor(Path(sys.argv[1])))
    else:
        main()
