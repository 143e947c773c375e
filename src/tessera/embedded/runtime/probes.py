"""Probes: is a container up, alive, ready? Asked by a command, a request, a connection or a gRPC call."""

import asyncio
import ssl
from collections.abc import Awaitable, Callable, Sequence
from importlib import import_module

import msgspec

from tessera.embedded.documents import Frozen
from tessera.errors import TesseraError

Run = Callable[[Sequence[str], float], Awaitable[tuple[int, str]]]
"""Run a command in the container for so many seconds at most; its exit code and what it printed."""
MOST_SHOWN = 200
GRPC_PROBES = "tessera.embedded.runtime.grpc_probes"
"""Most pods are not asked so, and gRPC takes longer to load than all else: it is loaded by the first that is, beside
the event loop and not in the time of that probe."""


class Timing(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """As a probe in a pod has it."""

    initial_delay_seconds: float = 0
    period_seconds: float = 10
    timeout_seconds: float = 1
    success_threshold: int = 1
    failure_threshold: int = 3


class Tally:
    """Turns single answers into a verdict, which changes only after several that agree."""

    def __init__(self, timing: Timing) -> None:
        self._timing = timing
        self._last: bool | None = None
        self._alike = 0

    def count(self, passed: bool) -> bool | None:
        """The verdict, if there is one by now."""
        self._alike = self._alike + 1 if passed is self._last else 1
        self._last = passed
        needed = self._timing.success_threshold if passed else self._timing.failure_threshold
        return passed if self._alike >= needed else None


class Checker:
    """Asks a container of the pod that has this address. Returns why a probe failed; nothing when it passed."""

    def __init__(self, container: Frozen, address: str, run: Run) -> None:
        self._container = container
        self._address = address
        self._run = run

    async def check(self, probe: Frozen) -> str:
        timeout_s = float(probe.get("timeoutSeconds") or 1)
        if "grpc" in probe:
            await asyncio.to_thread(import_module, GRPC_PROBES)
        try:
            async with asyncio.timeout(timeout_s):
                return await self.ask(probe, timeout_s)
        except TimeoutError:
            return f"no answer within {timeout_s:g} s"
        except (OSError, TesseraError) as error:
            return str(error)

    async def ask(self, handler: Frozen, timeout_s: float) -> str:
        """Also for hooks, which say in the same words what to do."""
        if asked := handler.get("exec"):
            code, printed = await self._run(asked.get("command") or (), timeout_s)
            return f"command ended with exit code {code}: {printed[:MOST_SHOWN].strip()}" if code else ""
        if asked := handler.get("httpGet"):
            return await self._get(asked)
        if asked := handler.get("tcpSocket"):
            _, writer = await asyncio.open_connection(asked.get("host") or self._address, self._port(asked["port"]))
            writer.close()
            return ""
        if asked := handler.get("grpc"):
            return await _ask_health(self._address, asked, timeout_s)
        if asked := handler.get("sleep"):
            await asyncio.sleep(asked.get("seconds", 0))
            return ""
        return f"{', '.join(handler) or 'nothing'} is asked for, expected exec, httpGet, tcpSocket or grpc"

    async def _get(self, asked: Frozen) -> str:
        host, port = asked.get("host") or self._address, self._port(asked["port"])
        headers = {"Host": f"{host}:{port}", "User-Agent": "kube-probe/1.36", "Accept": "*/*", "Connection": "close"}
        headers |= {header["name"]: header["value"] for header in asked.get("httpHeaders") or ()}
        tls = _trusting() if asked.get("scheme") == "HTTPS" else None
        reader, writer = await asyncio.open_connection(host, port, ssl=tls)
        try:
            listed = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
            writer.write(f"GET {asked.get('path') or '/'} HTTP/1.1\r\n{listed}\r\n".encode())
            words = (await reader.readline()).split()
        finally:
            writer.close()
        if len(words) < 2 or not words[1].isdigit():
            return "the answer is not HTTP"
        code = int(words[1])
        return "" if 200 <= code < 400 else f"HTTP probe failed with statuscode: {code}"

    def _port(self, port: int | str) -> int:
        if isinstance(port, int) or port.isdigit():
            return int(port)
        named = {one.get("name"): one["containerPort"] for one in self._container.get("ports") or ()}
        if port not in named:
            raise OSError(f'port is "{port}", expected a number or the name of a port of the container')
        return named[port]


async def watch(probe: Frozen, check: Callable[[], Awaitable[bool]], hear: Callable[[bool], None]) -> None:
    """Ask again and again; `hear` is told each verdict."""
    timing = msgspec.convert(probe, Timing)
    tally = Tally(timing)
    await asyncio.sleep(timing.initial_delay_seconds)
    while True:
        verdict = tally.count(await check())
        if verdict is not None:
            hear(verdict)
        await asyncio.sleep(timing.period_seconds)


async def _ask_health(address: str, asked: Frozen, timeout_s: float) -> str:
    from tessera.embedded.runtime.grpc_probes import ask_health

    return await ask_health(address, asked["port"], asked.get("service") or "", timeout_s)


def _trusting() -> ssl.SSLContext:
    """A probe asks whether somebody answers, not who."""
    context = ssl.create_default_context()
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    return context
