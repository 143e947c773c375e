"""A server is told what to do, says how it is, and stops in good order."""

import asyncio
import re
import signal
import socket
import subprocess
import sys
import urllib.request
from typing import Any

import grpc
import numpy as np
import pytest

from kpu.client.tensor_client import TensorClient
from kpu.errors import InvalidRequest, ServerGone, TooLarge, TransferFailed, TransferTimeout, UnsupportedTensor
from kpu.sharing.knocking import visit
from kpu.tensors import Description
from kpu.torch.metrics import Metrics, serve_metrics
from kpu.torch.server import QUIET_SECONDS, TensorServer
from kpu.torch.settings import SettingsError, read_settings
from kpu.wire.messages import TensorChunk

HOOKS = """
from kpu.errors import InvalidRequest
from kpu.torch.hooks import TensorHooks
import numpy as np
import threading

class Scaling(TensorHooks):
    def produce(self, index, parameters):
        if "bad" in parameters:
            raise InvalidRequest("bad is not good")
        return np.full(3, index)

    def process(self, tensor):
        if not len(tensor):
            raise RuntimeError("nothing to scale")
        return tensor * 2

class Wordy(TensorHooks):
    def produce(self, index, parameters):
        raise InvalidRequest("no " * int(parameters["times"]))

class Failing(TensorHooks):
    def produce(self, index, parameters):
        return next(iter(()))

    def process(self, tensor):
        raise TimeoutError("the database did not answer")

class Hanging(TensorHooks):
    def process(self, tensor):
        threading.Event().wait()

class Counting(TensorHooks):
    def produce(self, index, parameters):
        return np.array(len(self.received))
"""


def check(port: int, service: bytes = b"") -> bytes:
    with grpc.insecure_channel(f"127.0.0.1:{port}") as channel:
        return channel.unary_unary("/grpc.health.v1.Health/Check")(service, timeout=10)


def metrics(port: int, query: str = "") -> dict[str, float]:
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics{query}", timeout=10) as answer:
        lines = answer.read().decode().splitlines()
    return {line.rpartition(" ")[0]: float(line.rpartition(" ")[2]) for line in lines if not line.startswith("#")}


@pytest.fixture(scope="module")
def hooked(serve: Any, tmp_path_factory: pytest.TempPathFactory) -> Any:
    where = tmp_path_factory.mktemp("hooks")
    (where / "my_hooks.py").write_text(HOOKS)
    return lambda name, *flags: serve(*flags, KPU_HOOKS=f"my_hooks:{name}", PYTHONPATH=str(where))


def test_health_is_serving_for_the_whole_and_for_the_service(server):
    assert check(server.port) == b"\x08\x01"
    assert check(server.port, b"\x0a\x11kpu.torch.Service") == b"\x08\x01"


def test_health_of_a_service_that_is_not_there_is_not_found(server):
    with pytest.raises(grpc.RpcError) as refused:
        check(server.port, b"\x0a\x05other")
    assert refused.value.code() is grpc.StatusCode.NOT_FOUND


def test_the_hooks_of_a_module_make_and_process_tensors(hooked, talk):
    server = hooked("Scaling")
    made = talk(server.port, lambda client: client.receive_tensors(2))
    assert [np.asarray(tensor).tolist() for tensor in made] == [[0, 0, 0], [1, 1, 1]]
    (doubled,) = talk(server.port, lambda client: client.stream_tensors(np.arange(3)))
    assert np.asarray(doubled).tolist() == [0, 2, 4]
    with pytest.raises(TransferFailed, match="bad is not good"):
        talk(server.port, lambda client: client.receive_tensors(1, {"bad": "yes"}))
    with pytest.raises(TransferFailed, match="RuntimeError: nothing to scale"):
        talk(server.port, lambda client: client.stream_tensors(np.empty(0)))
    assert "nothing to scale" in server.end()


def test_whatever_a_hook_raises_is_told_and_ends_no_more_than_its_call(hooked, talk):
    server = hooked("Failing")
    with pytest.raises(TransferFailed, match="RuntimeError: a hook raised StopIteration"):
        talk(server.port, lambda client: client.receive_tensors(), timeout=30)
    with pytest.raises(TransferFailed, match="TimeoutError: the database did not answer") as raised:
        talk(server.port, lambda client: client.stream_tensors(np.ones(3)))
    assert not isinstance(raised.value, TransferTimeout), "nobody waited for too long"
    assert talk(server.port, lambda client: client.send_tensors(np.ones(3))).success


@pytest.mark.parametrize(("times", "said"), [(0, "InvalidRequest, and no word why"), (100_000, "no no no ")])
def test_a_hook_may_say_nothing_or_much_of_why_it_refuses(hooked, talk, times, said):
    server = hooked("Wordy")
    with pytest.raises(InvalidRequest, match=said):
        talk(server.port, lambda client: client.receive_tensors(1, {"times": times}))


def test_hooks_that_never_return_end_their_calls_and_hold_up_neither_others_nor_the_end(hooked, talk):
    server = hooked("Hanging", "--hook-seconds", "0.2", "--grace-seconds", "0.2")

    async def all_hang(client: TensorClient) -> Any:
        calls = (client.stream_tensors(np.ones(3)) for _ in range(20))
        return await asyncio.gather(*calls, return_exceptions=True)

    ended = talk(server.port, all_hang)
    assert [type(error) for error in ended] == [TransferTimeout] * 20
    assert "a hook of the server did not return within 0.2 s" in str(ended[0])
    assert talk(server.port, lambda client: client.receive_tensors())
    server.send_signal(signal.SIGTERM)
    assert server.process.wait(30) == 0


def test_hooks_see_what_clients_have_sent(hooked, talk):
    server = hooked("Counting")

    async def send_and_count(client: TensorClient) -> Any:
        await client.send_tensors(np.ones(3), np.ones(4))
        return await client.receive_tensors()

    assert np.asarray(talk(server.port, send_and_count)[0]) == 2


def test_metrics_tell_what_came_what_went_and_what_is_kept(serve, talk):
    with_metrics = serve("--metrics-port", "0", "--max-tensors", "2")
    (port,) = re.findall(r"metrics_port=(\d+)", "".join(with_metrics.lines))

    async def traffic(client: TensorClient) -> None:
        for _ in range(3):
            await client.send_tensors(np.zeros(1000, np.uint8))
        await client.stream_tensors(np.zeros(500, np.uint8))

    talk(with_metrics.port, traffic)
    told = metrics(int(port))
    assert told['kpu_calls_total{method="ReceiveTensors",code="OK"}'] == 3
    assert told['kpu_tensor_bytes_total{direction="received",path="grpc"}'] == 3500
    assert told['kpu_tensors_total{direction="sent",path="grpc"}'] == 1
    assert (told["kpu_stored_tensors"], told["kpu_stored_bytes"]) == (2, 2000)
    assert told["kpu_evicted_tensors_total"] == 1
    assert told["kpu_under_way_bytes"] == told["kpu_calls_in_flight"] == 0
    assert metrics(int(port), "?name[]=kpu_stored_tensors") == told
    assert "oldest tensor left" in with_metrics.end()


@pytest.mark.parametrize("host", ["[::]", "::"])
def test_metrics_of_a_server_that_listens_everywhere_can_be_read_over_ipv4(serve, host):
    everywhere = serve("--host", host, "--metrics-port", "0")
    (port,) = re.findall(r"metrics_port=(\d+)", "".join(everywhere.lines))
    assert metrics(int(port))["kpu_calls_in_flight"] == 0


def test_metrics_are_served_where_the_machine_has_no_ipv6(monkeypatch):
    create_server = socket.create_server

    def without_ipv6(address: Any, *, family: int = socket.AF_INET, **options: Any) -> socket.socket:
        if family == socket.AF_INET6:
            raise OSError(97, "Address family not supported by protocol")
        return create_server(address, family=family, **options)

    monkeypatch.setattr(socket, "create_server", without_ipv6)

    async def scene() -> dict[str, float]:
        async with await serve_metrics(Metrics(lambda: {"kpu_stored_bytes": 7}), "[::]", 0) as server:
            return await asyncio.to_thread(metrics, server.sockets[0].getsockname()[1])

    assert asyncio.run(scene()) == {"kpu_stored_bytes": 7}


def test_limits_hold_for_bytes_and_dtypes(serve, talk):
    limited = serve(KPU_MAX_TENSOR_BYTES="1Mi", KPU_DTYPES="float32,torch.int64")
    with pytest.raises(TooLarge, match="at most 1048576 bytes"):
        talk(limited.port, lambda client: client.send_tensors(np.zeros(1 << 18)))
    with pytest.raises(TransferFailed, match="dtype uint8 is not accepted"):
        talk(limited.port, lambda client: client.send_tensors(np.zeros(3, np.uint8)))
    assert talk(limited.port, lambda client: client.send_tensors(np.zeros(3, np.int64))).success


def test_many_large_uploads_at_once_stay_within_the_memory_of_the_server(serve, talk):
    small = serve("--memory-bytes", "64Mi")
    payload = np.ones(24 << 20, np.uint8)

    async def upload(client: TensorClient) -> Any:
        await client.send_tensors(payload)
        small.forget_peak_memory()
        before = small.figure("VmHWM")
        answers = await asyncio.gather(*(client.send_tensors(payload) for _ in range(12)))
        return [answer.success for answer in answers], small.figure("VmHWM") - before

    succeeded, grown = talk(small.port, upload)
    assert all(succeeded)
    # 64 MiB of tensors, and what gRPC holds for calls that wait; all at once would be 288 MiB.
    assert grown < 160 << 20


@pytest.mark.parametrize("is_shared", [False, True], ids=["grpc", "shared memory"])
@pytest.mark.parametrize(("calls", "tensor_mib"), [(1, 70), (3, 45)], ids=["one call", "three calls"])
def test_calls_with_a_hook_never_wait_for_memory_that_they_hold_themselves(hooked, talk, calls, tensor_mib, is_shared):
    server = hooked("Scaling", "--memory-bytes", "128Mi", "--wait-seconds", "20")

    async def all_at_once(client: TensorClient) -> Any:
        tensors = (np.full(tensor_mib << 20, index, np.uint8) for index in range(calls))
        return await asyncio.gather(*(client.stream_tensors(tensor) for tensor in tensors))

    doubled = talk(server.port, all_at_once, shared=is_shared)
    assert [int(np.asarray(tensor)[-1]) for (tensor,) in doubled] == [2 * index for index in range(calls)]
    server.end()


def test_all_that_a_server_holds_is_within_one_sum():
    async def scene() -> None:
        server = TensorServer(read_settings(["--host", "127.0.0.1", "--port", "0", "--memory-bytes", "64Mi"], {}))
        total = server.memory.total
        assert total.limit == 64 << 20
        guest = visit(server.door.invite()) if server.door else None
        assert guest
        link = server.door.link(guest.session) if server.door else None
        assert link
        lent = link.lend(np.ones(8 << 20, np.uint8))
        room = server.rooms.make(Description((8 << 20,), "uint8"))
        assert lent
        assert total.used == 8 << 20
        del room
        assert total.used == 16 << 20, "memory that is kept warm counts"
        assert not server.memory.reserve_now(64 << 20)
        guest.close()
        await server.stop()

    asyncio.run(scene())


def test_a_server_that_is_told_to_stop_lets_a_transfer_finish(serve, talk):
    server = serve("--grace-seconds", "60")
    idle = server.figure("VmRSS")

    async def stop_in_the_middle(client: TensorClient) -> Any:
        sending = asyncio.create_task(client.stream_tensors(np.ones(1 << 28, np.uint8)))
        while server.figure("VmRSS") < idle + (100 << 20):
            await asyncio.sleep(0.01)
        server.send_signal(signal.SIGTERM)
        return await sending

    (back,) = talk(server.port, stop_in_the_middle)
    assert np.asarray(back).all()
    assert server.process.wait(30) == 0
    with pytest.raises(ServerGone):
        talk(server.port, lambda client: client.receive_tensors())


def test_who_connects_and_says_nothing_does_not_hold_up_the_end_but_a_call_does(serve, tmp_path):
    server = serve("--grace-seconds", "86400", "--metrics-port", "0", "--shared-socket", str(tmp_path))
    figures_port = int(re.findall(r"metrics_port=(\d+)", "".join(server.lines))[0])
    header = TensorChunk("a", 0, b"1", 2, metadata={"shape": "2", "dtype": "uint8"}).encode()
    last = TensorChunk("a", 1, b"2", 2, is_last=True).encode()

    async def stop_during_a_call() -> bytes:
        async with grpc.aio.insecure_channel(f"127.0.0.1:{server.port}") as channel:
            sending = channel.stream_unary("/kpu.torch.Service/ReceiveTensors")()
            await sending.write(header)
            while not (await asyncio.to_thread(metrics, figures_port))["kpu_calls_in_flight"]:
                await asyncio.sleep(0.05)
            server.send_signal(signal.SIGTERM)
            await asyncio.sleep(2 * QUIET_SECONDS)
            assert list(tmp_path.iterdir()) == [], "whoever is killed now leaves nothing"
            await sending.write(last)
            await sending.done_writing()
            return await sending

    with socket.create_connection(("127.0.0.1", server.port)):
        assert b"Received 1 tensor" in asyncio.run(stop_during_a_call())
        assert server.process.wait(10) == 0


def test_a_second_server_on_a_port_is_told_so_and_does_not_share_it(server):
    command = [sys.executable, "-m", "kpu.torch.server", "--host", "127.0.0.1", "--port", str(server.port)]
    second = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert second.returncode == 1
    assert "kpu.torch.server:" in second.stderr.splitlines()[-1]


@pytest.mark.parametrize(
    ("flags", "said"),
    [
        (["--port", "http"], 'port is "http"'),
        (["--port", "70000"], "0 to 65535"),
        (["--chunk-size", "7"], "chunk-size"),
        (["--log-level", "loud"], "log-level"),
        (["--memory-bytes", "2GB"], "bytes such as"),
        (["--token-file", "/does/not/exist"], "cannot be read"),
        (["--tls-cert", "/a"], "set both"),
        (["--idle-seconds", "soon"], "idle-seconds"),
        (["--idle-seconds", "0"], 'idle-seconds is "0", expected seconds, more than 0'),
        (["--keepalive-seconds", "0"], 'keepalive-seconds is "0", expected seconds, more than 0'),
    ],
)
def test_a_setting_that_makes_no_sense_is_refused_with_what_was_expected(flags, said):
    with pytest.raises(SettingsError, match=said):
        read_settings(flags, {})


def test_a_dtype_in_the_settings_that_nobody_knows_is_refused():
    with pytest.raises(UnsupportedTensor):
        read_settings(["--dtypes", "float32,float33"], {})


def test_settings_come_from_flags_then_variables_then_those_of_the_seed():
    seed = {"LOG_LEVEL": "debug", "CHUNK_SIZE": "2097152"}
    assert (read_settings([], seed).log_level, read_settings([], seed).chunk_bytes) == ("DEBUG", 2097152)
    both = {**seed, "KPU_LOG_LEVEL": "ERROR", "KPU_PORT": "1234"}
    assert (read_settings([], both).log_level, read_settings([], both).port) == ("ERROR", 1234)
    assert read_settings(["--port", "4321"], both).port == 4321


@pytest.mark.parametrize(("told", "level"), [("warn", "WARNING"), ("FATAL", "CRITICAL"), ("error", "ERROR")])
def test_a_log_level_may_be_called_as_other_programs_call_it(told, level):
    assert read_settings([], {"LOG_LEVEL": told}).log_level == level


def test_an_empty_token_file_is_refused_because_it_would_open_the_server(tmp_path):
    (tmp_path / "token").write_text("\n")
    with pytest.raises(SettingsError, match="is empty"):
        read_settings(["--token-file", str(tmp_path / "token")], {})


@pytest.mark.parametrize("blank", ["", "  ", "\n"])
@pytest.mark.parametrize("variable", ["KPU_TOKEN", "KPU_TOKEN_FILE"])
def test_a_token_that_is_set_and_blank_is_refused_because_it_would_open_the_server(variable, blank):
    with pytest.raises(SettingsError, match="set but blank"):
        read_settings([], {variable: blank})


def test_a_token_is_what_stands_between_the_blanks():
    assert read_settings([], {"KPU_TOKEN": " secret\n"}).token == "secret"
    assert read_settings([], {}).token is None


def test_a_token_that_no_call_can_carry_is_refused():
    with pytest.raises(SettingsError, match="printable ASCII"):
        read_settings([], {"KPU_TOKEN": "gehe\u00efm"})


def refused(*flags: str) -> str:
    """What a server says that does not start."""
    command = [sys.executable, "-m", "kpu.torch.server", "--host", "127.0.0.1", "--port", "0", *flags]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert ended.returncode == 1
    assert "Traceback" not in ended.stderr
    return ended.stderr


@pytest.mark.parametrize("named", ["builtins:dict", "os:path"])
def test_hooks_that_are_none_end_the_server_with_a_sentence(named):
    assert "not a subclass of kpu.torch.hooks.TensorHooks" in refused("--hooks", named)


def test_a_certificate_that_is_none_ends_the_server_with_a_sentence(tmp_path):
    certificate, key = tmp_path / "tls.crt", tmp_path / "tls.key"
    certificate.write_text("none")
    key.write_text("none")
    said = refused("--tls-cert", str(certificate), "--tls-key", str(key))
    assert f"tls-cert {certificate} and tls-key {key} cannot be used" in said
