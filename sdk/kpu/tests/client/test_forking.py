"""A process that was forked, and what it has of its parent."""

import json
import subprocess
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

PROGRAM = """
import os, sys
from kubernetes import client
from kpu.client.api import Api

configuration = client.Configuration()
configuration.host = sys.argv[1]
api = Api(configuration)
print(api.get("/")["connection"], api.get("/")["connection"], flush=True)
pid = os.fork()
if not pid:
    print(api.get("/")["connection"], flush=True)
    os._exit(0)
os.waitpid(pid, 0)
print(api.get("/")["connection"])
"""


@pytest.fixture
def asked() -> Iterator[str]:
    """Something that answers each question with the number of the connection that it came by."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            content = json.dumps({"connection": self.client_address[1]}).encode()
            self.send_response(200)
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, format: str, *args: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as listening:
        listening.daemon_threads = True
        thread = threading.Thread(target=listening.serve_forever, args=[0.05], daemon=True)
        thread.start()
        yield f"http://127.0.0.1:{listening.server_address[1]}"
        listening.shutdown()
        thread.join()


def test_a_forked_child_asks_the_api_server_by_connections_of_its_own(asked):
    done = subprocess.run([sys.executable, "-c", PROGRAM, asked], stdout=subprocess.PIPE, timeout=60, check=True)
    first, second, of_child, third = map(int, done.stdout.split())
    assert first == second == third != of_child
