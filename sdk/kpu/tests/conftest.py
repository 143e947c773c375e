"""Real tensor servers, each a process of its own on the loopback; and the messages as protobuf generates them."""

import asyncio
import importlib.util
import os
import re
import signal
import subprocess
import sys
import threading
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

import kpu.wire
from kpu.client import TensorClient

_PROTO = Path(kpu.wire.__file__).parent / "service.proto"
_SERVING = re.compile(r"serving tensors .*port=(\d+)")


@dataclass
class ServerProcess:
    """A server that has said on which port it serves. What it logs is kept."""

    process: subprocess.Popen[str]
    port: int = 0
    lines: list[str] = field(default_factory=list[str])
    _drain: threading.Thread | None = None

    def wait_until_serving(self) -> None:
        assert self.process.stderr
        for line in self.process.stderr:
            self.lines.append(line)
            if found := _SERVING.search(line):
                self.port = int(found[1])
                self._drain = threading.Thread(target=self.lines.extend, args=(self.process.stderr,))
                self._drain.start()
                return
        raise AssertionError("the server ended before it served:\n" + "".join(self.lines))

    @property
    def is_alive(self) -> bool:
        return self.process.poll() is None

    def figure(self, name: str) -> int:
        """A line of /proc/PID/status, such as VmHWM, in bytes."""
        status = Path(f"/proc/{self.process.pid}/status").read_text()
        found = re.search(rf"^{name}:\s+(\d+) kB$", status, re.MULTILINE)
        assert found
        return int(found[1]) * 1024

    def forget_peak_memory(self) -> None:
        Path(f"/proc/{self.process.pid}/clear_refs").write_text("5")

    def send_signal(self, number: signal.Signals) -> None:
        self.process.send_signal(number)

    def end(self) -> str:
        """Kill what is left of it; returns what it logged."""
        self.process.kill()
        self.process.wait()
        if self._drain:
            self._drain.join()
        if self.process.stderr:
            self.process.stderr.close()
        return "".join(self.lines)


Serve = Callable[..., ServerProcess]


@pytest.fixture(scope="module")
def serve(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Serve]:
    """Starts servers with flags and variables, and ends them."""
    started: list[ServerProcess] = []

    def start(*flags: str, **variables: str) -> ServerProcess:
        environment = {key: value for key, value in os.environ.items() if not key.startswith("KPU_")}
        told = ["--host", "127.0.0.1", "--port", "0", *flags]
        server = ServerProcess(
            subprocess.Popen(
                [sys.executable, "-m", "kpu.torch.server", *told],
                stderr=subprocess.PIPE,
                text=True,
                env={**environment, **variables},
                cwd=tmp_path_factory.getbasetemp(),
            )
        )
        started.append(server)
        server.wait_until_serving()
        return server

    yield start
    for server in started:
        server.end()


@pytest.fixture(scope="module")
def server(serve: Serve) -> ServerProcess:
    """One server for all tests of a module."""
    return serve("--log-level", "DEBUG")


@pytest.fixture(scope="session")
def talk() -> Callable[..., Any]:
    """Has a client of its own do something with the server at a port; over gRPC alone, unless told otherwise."""

    def talk(port: int, use: Callable[[TensorClient], Awaitable[Any]], **options: Any) -> Any:
        async def with_client() -> Any:
            async with TensorClient("127.0.0.1", port, **{"shared": False, **options}) as client:
                return await use(client)

        return asyncio.run(with_client())

    return talk


@pytest.fixture(scope="session")
def protocol(tmp_path_factory: pytest.TempPathFactory) -> ModuleType:
    """The messages of the shipped service.proto."""
    from grpc_tools import protoc

    where = tmp_path_factory.mktemp("protocol")
    assert not protoc.main(["protoc", f"--proto_path={_PROTO.parent}", f"--python_out={where}", str(_PROTO)])
    spec = importlib.util.spec_from_file_location("kpu_service_pb2", where / "service_pb2.py")
    assert spec
    assert spec.loader
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module
