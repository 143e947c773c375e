"""Figures of a job's workers from a real Prometheus, which scrapes our exporter and a text with the names of NVIDIA's.

Cards are the only double: what processes say of them stands in files as the native library writes them.
"""

import asyncio
import os
import re
import ssl
import subprocess
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
import urllib3
import yaml
from kubernetes.client.exceptions import ApiException
from prometheus_client import CollectorRegistry, generate_latest

from openshift_ai_sdk.training import MPIJob
from openshift_ai_sdk.training import prometheus as finding
from tessera.admission.certificates.authorities import issue_serving, make_authority
from tessera.node.run_directory import RunDirectory
from tessera.node.use_exporting import UseCollector
from tessera.node.using import ContainerUses
from testbed.fixtures import require, require_testbed
from testbed.images.debian import unpack
from testbed.images.errors import ImageFailed
from tests.builders import a_share
from tests.contract.waiting import eventually
from tests.unit.node.making import NODE, a_ref, a_tile
from tests.unit.node.making_regions import MIB, live, write_region

HOST = "127.0.0.1"
TOKEN = "of-the-user"
DCGM = """
DCGM_FI_DEV_GPU_UTIL{gpu="0",UUID="GPU-7",pod="plain-worker-0",namespace="lab",container="main"} 40
DCGM_FI_DEV_GPU_UTIL{gpu="1",UUID="GPU-8",pod="plain-worker-0",namespace="lab",container="main"} 60
DCGM_FI_DEV_FB_USED{gpu="0",UUID="GPU-7",pod="plain-worker-0",namespace="lab",container="main"} 1000
DCGM_FI_DEV_GPU_UTIL{gpu="2",UUID="GPU-9",pod="plain-worker-1",namespace="lab",container="main"} 0
DCGM_FI_DEV_GPU_UTIL{gpu="3",UUID="GPU-6",pod="plain-worker-0",namespace="other",container="main"} 99
container_cpu_usage_seconds_total{pod="plain-worker-0",namespace="lab",container="main"} %(cpu_s)f
container_cpu_usage_seconds_total{pod="plain-worker-0",namespace="lab"} %(cpu_s)f
container_memory_working_set_bytes{pod="plain-worker-0",namespace="lab",container="main"} 123456
"""
EXPORTED = DCGM.replace("plain-worker", "moved-worker")


class Server:
    """HTTP, or HTTPS with a context: `answer` is given path, body and headers, and gives status and text."""

    def __init__(self, answer: Any, context: ssl.SSLContext | None = None) -> None:
        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
                status, text = answer(self.path, body, self.headers)
                self.send_response(status)
                self.send_header("Content-Type", "text/plain; version=0.0.4")
                self.send_header("Content-Length", str(len(text)))
                self.end_headers()
                self.wfile.write(text)

            do_POST = do_GET  # noqa: N815 # the name is the server's

            def log_message(self, format: str, *arguments: object) -> None:
                """Keep quiet."""

        self._server = ThreadingHTTPServer((HOST, 0), Handler)
        if context:
            self._server.socket = context.wrap_socket(self._server.socket, server_side=True)
        self.port = self._server.server_port

    def __enter__(self) -> "Server":
        self._thread = threading.Thread(target=self._server.serve_forever, args=[0.05])
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()


def our_exporter(directory: Path, stack: ExitStack) -> Any:
    """Of a worker that has used half of its share's memory and a quarter of its card's time between two looks."""
    tile = a_tile("aa", a_share("GPU-0", 1000, 25), pod=a_ref("uid-1", name="shared-worker-0", namespace="lab"))
    run = RunDirectory(directory)
    region = run.region(tile.pod.uid, tile.container)
    uses = ContainerUses(run, lambda: (tile,))
    write_region(region, (7, 700, 500 * MIB), gpu_ns=0)
    stack.callback(os.close, live(region, 0))
    asyncio.run(uses.look())
    write_region(region, (7, 700, 500 * MIB), gpu_ns=10**6)
    asyncio.run(uses.look())
    registry = CollectorRegistry()
    registry.register(UseCollector(NODE, uses, lambda: ()))
    return registry


@pytest.fixture(scope="module")
def prometheus(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Debian's. The same text is scraped twice: once as it is, once as if by a Service whose labels come first."""
    require_testbed()
    try:
        program = unpack(["prometheus"]).launcher("prometheus")
    except ImageFailed as error:
        require(False, f"Debian's prometheus cannot be had: {error}")
        raise
    directory = tmp_path_factory.mktemp("prometheus")
    began_s = time.monotonic()
    with ExitStack() as stack:
        registry = our_exporter(directory / "run", stack)

        def answer(path: str, _: bytes, __: Mapping[str, str]) -> tuple[int, bytes]:
            spent = {"cpu_s": 2 * (time.monotonic() - began_s)}
            pages = {"/ours": generate_latest(registry), "/dcgm": (DCGM % spent).encode()}
            return 200, pages.get(path, (EXPORTED % spent).encode())

        exporter = stack.enter_context(Server(answer))
        yield stack.enter_context(_Running(program, directory, exporter.port)).url


class _Running:
    def __init__(self, program: Path, directory: Path, exporter_port: int) -> None:
        moved = {"pod": "dcgm-exporter-x", "namespace": "gpu-operator"}
        target = f"{HOST}:{exporter_port}"
        jobs = [
            {
                "job_name": path,
                "metrics_path": f"/{path}",
                "honor_labels": True,
                "static_configs": [{"targets": [target]}],
            }
            for path in ("ours", "dcgm")
        ]
        jobs.append({"job_name": "moved", "static_configs": [{"targets": [target], "labels": moved}]})
        times = {"scrape_interval": "500ms", "scrape_timeout": "500ms"}
        (directory / "config.yaml").write_text(yaml.safe_dump({"global": times, "scrape_configs": jobs}))
        self._program, self._directory = program, directory

    def __enter__(self) -> "_Running":
        log = (self._directory / "log").open("wb")
        command = [str(self._program), f"--config.file={self._directory / 'config.yaml'}"]
        command += [f"--storage.tsdb.path={self._directory / 'data'}", f"--web.listen-address={HOST}:0"]
        self._process = subprocess.Popen(command, stdout=log, stderr=log)
        log.close()
        self.url = eventually(self._listening)
        return self

    def __exit__(self, *_: object) -> None:
        self._process.terminate()
        self._process.wait(30)

    def _listening(self) -> str:
        """Where, by its own log, once it has something to tell."""
        assert self._process.poll() is None, (self._directory / "log").read_text()
        ports = [int(port) for port in re.findall(rf"address={HOST}:([0-9]+)", (self._directory / "log").read_text())]
        url = f"http://{HOST}:{max(ports, default=0)}"
        if not max(ports, default=0):  # it says first where it means to listen, and then where it does
            return ""
        told = 'count({__name__=~"DCGM_FI_DEV_GPU_UTIL|hami_vgpu_memory_used_bytes"})'
        answer = urllib3.request("GET", f"{url}/api/v1/query", fields={"query": told}, retries=10)
        samples = answer.json()["data"]["result"] if answer.status == 200 else []
        return url if samples and samples[0]["value"][1] == str(2 * EXPORTED.count("GPU_UTIL") + 1) else ""


@pytest.fixture
def metrics_of(prometheus: str) -> Any:
    return lambda name, **more: MPIJob(name, "lab", image="mpi").get_metrics(prometheus_url=prometheus, **more)


@pytest.mark.parametrize("job", ["plain", "moved"])
def test_nvidias_figures_are_found_by_both_spellings(metrics_of, job):
    found = metrics_of(job, window="1m")
    first, second = found["workers"]
    assert (first["name"], first["gpuUtilization"], first["gpuMemoryUsed"]) == (f"{job}-worker-0", 50, 1000)
    assert (second["gpuUtilization"], second["gpuMemoryUsed"]) == (0, None)
    assert found["aggregated"]["avgGpuUtilization"] == 25
    assert found["window"] == "1m"
    assert "DCGM_FI_DEV_GPU_UTIL" in found["series"]


def test_the_kubelets_figures_are_rates_and_sums_of_containers(metrics_of):
    assert metrics_of("plain")["workers"][0]["memoryUsage"] == 123456
    used = eventually(lambda: metrics_of("plain", window="3s")["workers"][0]["cpuUsage"])
    assert used == pytest.approx(2, rel=0.9)


def test_our_own_exporter_tells_what_a_share_is_used(metrics_of, prometheus):
    found = metrics_of("shared")
    first, second = found["workers"]
    assert first["gpuMemoryUsed"] == 500
    assert first["gpuUtilization"] > 0
    assert second["gpuMemoryUsed"] is None
    assert found["source"] == prometheus
    assert "hami_vgpu_memory_used_bytes" in found["series"]


def test_a_job_that_nobody_knows_has_no_figures(metrics_of):
    found = metrics_of("unheard")
    assert set(found["aggregated"].values()) == {None}
    assert found["warnings"]


@pytest.fixture
def querier(prometheus: str, tmp_path: Path) -> Iterator[tuple[str, str]]:
    """As OpenShift's stands before Prometheus: TLS by its own authority, and nothing without a token."""
    now = datetime.now(UTC)
    authority = make_authority(now, timedelta(days=1))
    serving = issue_serving(authority, [HOST, "localhost"], now, timedelta(days=1))
    for name, content in (("ca.crt", authority.chain), ("tls.crt", serving.chain), ("tls.key", serving.key)):
        (tmp_path / name).write_bytes(content)
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(tmp_path / "tls.crt", tmp_path / "tls.key")

    def answer(path: str, body: bytes, headers: Mapping[str, str]) -> tuple[int, bytes]:
        if headers.get("Authorization") != f"Bearer {TOKEN}":
            return 401, b"Unauthorized"
        passed = urllib3.request(
            "POST", prometheus + path, body=body, headers={"Content-Type": headers["Content-Type"]}
        )
        return passed.status, passed.data

    with Server(answer, context) as server:
        yield f"https://{HOST}:{server.port}", str(tmp_path / "ca.crt")


def test_openshifts_querier_is_asked_with_token_and_authority(querier, monkeypatch):
    url, authority = querier
    for variable, value in (("PROMETHEUS_URL", url), ("PROMETHEUS_TOKEN", TOKEN), ("PROMETHEUS_CA_FILE", authority)):
        monkeypatch.setenv(variable, value)
    assert MPIJob("plain", "lab", image="mpi").get_metrics()["aggregated"]["avgGpuUtilization"] == 25


def test_in_a_pod_of_openshift_nothing_needs_to_be_named(querier, monkeypatch, tmp_path: Path):
    url, authority = querier
    (tmp_path / "service-ca.crt").write_bytes(Path(authority).read_bytes())
    (tmp_path / "token").write_text(TOKEN)
    monkeypatch.setattr(finding, "ACCOUNT", tmp_path)
    monkeypatch.setattr(finding, "IN_CLUSTER_QUERIER", url)
    assert MPIJob("plain", "lab", image="mpi").get_metrics()["aggregated"]["avgGpuUtilization"] == 25


def test_a_wrong_token_and_an_unknown_authority_are_api_exceptions(querier):
    url, authority = querier
    job = MPIJob("plain", "lab", image="mpi")
    with pytest.raises(ApiException) as refused:
        job.get_metrics(prometheus_url=url, token="wrong", ca_file=authority)
    assert refused.value.status == 401
    with pytest.raises(ApiException, match="cannot be reached") as untrusted:
        job.get_metrics(prometheus_url=url, token=TOKEN)
    assert untrusted.value.status == 503
