"""Servers in pods, reached through the API server, through kubectl and through their Service."""

import asyncio
import re
import sys

import pytest

from tessera.embedded.controllers.objects import SERVICES
from tessera.kube.kinds import NODES
from tests.embedded.doors.engine import NODE, PATIENCE_S, container
from tests.embedded.runtime.node import has_ended, is_ready
from tests.embedded.server import free_port

pytestmark = pytest.mark.asyncio(loop_scope="module")

PORT, SERVICE_PORT = free_port(), free_port()
SERVER = f"""
import os, http.server

class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self):
        if self.path == "/moved":
            self.send_response(302)
            self.send_header("Location", "/there")
            self.send_header("Content-Length", "0")
            self.end_headers()
            return
        self.answer(200 if self.path != "/absent" else 404, os.environ["HOSTNAME"] + " " + self.path)

    def do_POST(self):
        self.answer(200, str(len(self.rfile.read(int(self.headers["Content-Length"])))))

    def answer(self, status, text):
        body = text.encode() + b"\\n"
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

http.server.ThreadingHTTPServer((os.environ["AT"], {PORT}), Handler).serve_forever()
"""


async def serve(engine, name, at="$(POD_IP)", **more):
    """A pod that serves pages at its own address, or wherever it is told to."""
    env = [{"name": "POD_IP", "valueFrom": {"fieldRef": {"fieldPath": "status.podIP"}}}, {"name": "AT", "value": at}]
    probe = {"tcpSocket": {"port": PORT}, "periodSeconds": 1}
    ports = [{"name": "http", "containerPort": PORT}]
    what = {"readinessProbe": probe, **container("", env=env, ports=ports), "command": [sys.executable, "-c", SERVER]}
    what |= more
    await engine.start(what, name=name, labels={"app": "web"})
    return (await engine.wait(is_ready, name))["podIP"]


async def expose(engine, port=SERVICE_PORT, **more):
    spec = {"selector": {"app": "web"}, "ports": [{"name": "web", "port": port, "targetPort": "http"}], **more}
    made = await engine.client.create(SERVICES, {"metadata": {"name": "web"}, "spec": spec}, namespace="default")
    return made.spec.cluster_ip


async def fetch(address, port, page="/"):
    """Tried until somebody answers."""
    async with asyncio.timeout(PATIENCE_S):
        while True:
            try:
                reader, writer = await asyncio.open_connection(address, port)
                writer.write(f"GET {page} HTTP/1.0\r\n\r\n".encode())
                answer = await reader.read()
                writer.close()
            except OSError:
                answer = b""
            if answer:
                return answer.partition(b"\r\n\r\n")[2].decode().strip()
            await asyncio.sleep(0.05)


async def raw(engine, path):
    return await engine.kubectl("get", "--raw", f"/api/v1/namespaces/default/{path}")


async def test_pages_come_through_the_api_server(engine):
    await serve(engine, "one")
    await expose(engine)
    for path in (f"pods/one:{PORT}/proxy/a%20b?c=d", "pods/http:one:http/proxy/a%20b?c=d", "pods/one/proxy/a%20b?c=d"):
        assert (await raw(engine, path)).printed == "one /a%20b?c=d\n"
    async with asyncio.timeout(PATIENCE_S):
        while (await raw(engine, "services/web:web/proxy/x")).printed != "one /x\n":
            await asyncio.sleep(0.1)
    assert (await raw(engine, f"services/http:web:{SERVICE_PORT}/proxy/")).printed == "one /\n"
    assert (await raw(engine, "services/web:web/proxy/absent")).code != 0
    moved = await raw(engine, "services/web:web/proxy/moved")
    assert moved.printed == "one /there\n"


async def test_a_port_of_a_node_is_reached_also_over_tls(engine):
    await engine.client.create(NODES, {"metadata": {"name": NODE}})
    # The server asks itself, as nobody: its version is for all to see.
    through = f"/api/v1/nodes/https:{NODE}:{engine.port}/proxy"
    assert '"gitVersion"' in (await engine.kubectl("get", "--raw", f"{through}/version")).printed
    assert "forbidden" in (await engine.kubectl("get", "--raw", f"{through}/api/v1/nodes")).complaints
    kubelet = await engine.kubectl("get", "--raw", f"/api/v1/nodes/{NODE}/proxy/healthz")
    assert f'node "{NODE}" has no kubelet that answers' in kubelet.complaints
    await engine.client.delete(NODES, NODE)


async def test_nobody_at_a_port_is_503(engine):
    await engine.start("sleep 1000")
    await engine.wait(is_ready)
    done = await raw(engine, "pods/worker:9/proxy/")
    assert "error trying to reach service" in done.complaints


async def test_kubectl_forwards_a_port_for_several_connections_at_once(engine):
    await serve(engine, "one")
    process = await engine.open_kubectl("port-forward", "pod/one", f":{PORT}")
    told = (await process.stdout.readline()).decode()
    found = re.search(r"127\.0\.0\.1:(\d+) ->", told)
    assert found, told
    pages = await asyncio.gather(*(fetch("127.0.0.1", int(found[1]), f"/{number}") for number in range(8)))
    assert pages == [f"one /{number}" for number in range(8)]
    process.terminate()
    await process.wait()


FORWARD = f"""
import sys
from kubernetes import config
from kubernetes.client import CoreV1Api
from kubernetes.stream import portforward

pods = CoreV1Api(config.new_client_from_config(sys.argv[1]))
forwarded = portforward(pods.connect_get_namespaced_pod_portforward, "one", "default", ports="{PORT},9")
connection = forwarded.socket({PORT})
connection.setblocking(True)
connection.sendall(b"GET /there HTTP/1.0\\r\\n\\r\\n")
answer = b""
while not answer.endswith(b"/there\\n"):
    answer += connection.recv(4096)
print(answer.decode().splitlines()[-1])
print(forwarded.error(9))
"""


async def test_the_python_client_forwards_ports(engine):
    await serve(engine, "one")
    asking = (sys.executable, "-c", FORWARD, str(engine.kubeconfig))
    process = await asyncio.create_subprocess_exec(*asking, stdout=asyncio.subprocess.PIPE)
    printed, _ = await asyncio.wait_for(process.communicate(), PATIENCE_S)
    assert printed.decode().splitlines() == ["one /there", "error forwarding port 9: nobody listens there"]


async def test_a_port_nobody_listens_at_is_complained_of(engine):
    await engine.start("sleep 1000")
    await engine.wait(is_ready)
    process = await engine.open_kubectl("port-forward", "pod/worker", ":9")
    told = (await process.stdout.readline()).decode()
    found = re.search(r"127\.0\.0\.1:(\d+) ->", told)
    assert found, told
    reader, writer = await asyncio.open_connection("127.0.0.1", int(found[1]))
    writer.write(b"hello")
    assert await reader.read() == b""
    writer.close()
    async with asyncio.timeout(PATIENCE_S):
        while b"error forwarding port 9 to pod worker" not in (line := await process.stderr.readline()):
            assert line, "kubectl ended without a complaint"
    process.kill()
    await process.wait()


async def test_a_service_leads_to_each_of_its_pods_in_turn(engine):
    await serve(engine, "one")
    await serve(engine, "two")
    address = await expose(engine)
    async with asyncio.timeout(PATIENCE_S):
        seen = set()
        while seen != {"one /", "two /"}:
            seen.add(await fetch(address, SERVICE_PORT))


async def test_a_pod_that_listens_everywhere_may_have_the_port_of_its_service(engine):
    address = await expose(engine, port=PORT)
    # Ready before it listens, as every pod without a probe is; it takes its time, so that the Service could come first.
    slow = [sys.executable, "-c", f"import time; time.sleep(0.5)\n{SERVER}"]
    await serve(engine, "one", at="0.0.0.0", readinessProbe=None, command=slow)
    assert await fetch(address, PORT) == "one /"


async def test_a_service_without_pods_is_no_longer_listened_for(engine):
    await serve(engine, "one")
    address = await expose(engine)
    assert await fetch(address, SERVICE_PORT) == "one /"
    await engine.kubectl("delete", "pod", "one", "--now")
    async with asyncio.timeout(PATIENCE_S):
        while True:
            try:
                _, writer = await asyncio.open_connection(address, SERVICE_PORT)
            except OSError:
                return
            writer.close()
            await asyncio.sleep(0.05)


async def test_pods_know_services_by_their_names(engine):
    await expose(engine)
    names = ("web", "web.default", "web.default.svc", "web.default.svc.cluster.local")
    await engine.start("; ".join(f"until getent hosts {name}; do sleep 0.05; done" for name in names))
    assert (await engine.wait(has_ended))["phase"] == "Succeeded"


async def test_a_headless_service_is_called_by_the_addresses_of_its_pods(engine):
    address = await serve(engine, "one")
    await expose(engine, clusterIP="None")
    await engine.start(f"until getent ahostsv4 web | grep -q '^{address} '; do sleep 0.05; done")
    assert (await engine.wait(has_ended))["phase"] == "Succeeded"
