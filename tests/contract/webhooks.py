"""A server of admission webhooks inside the test process, and the configurations that send an API server to it."""

import base64
import json
import ssl
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from testbed.certificates import Authority
from tests.contract.api import Api, Object
from tests.contract.waiting import eventually

Answer = Callable[[Object], Object]
ALLOWED: Object = {"allowed": True}
CANARY = "canary"


def patch_with(*operations: Object) -> Object:
    """Allow the request with these JSON patch operations."""
    patch = base64.b64encode(json.dumps(operations).encode()).decode()
    return ALLOWED | {"patchType": "JSONPatch", "patch": patch}


class WebhookServer:
    """Answers each AdmissionReview with the function that was registered for its path, and remembers the request."""

    def __init__(self, host: str, directory: Path) -> None:
        authority = Authority(directory, "webhook-ca")
        serving = authority.issue("webhook", "webhook", reachable_at=[host])
        self.bundle = base64.b64encode(authority.files.certificate.read_bytes()).decode()
        self._answers: dict[str, Answer] = {}
        self._requests: dict[str, list[Object]] = {}
        self._server = ThreadingHTTPServer((host, 0), self._handler())
        context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        context.load_cert_chain(serving.certificate, serving.key)
        self._server.socket = context.wrap_socket(self._server.socket, server_side=True)
        self._url = f"https://{host}:{self._server.server_port}"

    @contextmanager
    def running(self) -> Iterator["WebhookServer"]:
        thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.05})
        thread.start()
        try:
            yield self
        finally:
            self._server.shutdown()
            thread.join()
            self._server.server_close()

    def client_config(self, name: str, answer: Answer) -> Object:
        """Where an API server finds this answer."""
        self._answers[f"/{name}"] = answer
        self._requests[f"/{name}"] = []
        return {"url": f"{self._url}/{name}", "caBundle": self.bundle}

    def requests(self, name: str) -> list[Object]:
        """Every AdmissionRequest that came for this name."""
        return self._requests[f"/{name}"]

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        answers, requests = self._answers, self._requests

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                review = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                path = self.path.partition("?")[0]
                requests[path].append(review["request"])
                response = {"uid": review["request"]["uid"]} | answers[path](review["request"])
                body = json.dumps({key: review[key] for key in ("apiVersion", "kind")} | {"response": response})
                with suppress(OSError):  # nobody waits for an answer that comes too late
                    self._send(body.encode())

            def _send(self, body: bytes) -> None:
                self.send_response(200)
                self.send_header("Content-Type", "application/json")
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, format: str, *arguments: Any) -> None:
                """Keep quiet; a test asks for the requests."""

        return Handler


class Webhooks:
    """The webhook configurations of one test; they see its namespace alone and go with it."""

    def __init__(self, api: Api, server: WebhookServer, namespace: str) -> None:
        self._api = api
        self._server = server
        self._namespace = namespace
        self._made: list[str] = []

    def add(self, kind: str, answer: Answer, **fields: Any) -> list[Object]:
        """Register a Mutating or Validating webhook for pods and wait until it is in force; the requests it gets."""
        name = f"{kind.lower()}{len(self._made)}.{self._namespace}"
        hook = self._hook(name, "", "pods", answer) | fields
        canary = self._hook(f"{CANARY}{name}", "coordination.k8s.io", "leases", lambda _: ALLOWED)
        path = f"/apis/admissionregistration.k8s.io/v1/{kind.lower()}webhookconfigurations"
        self._api.ask("POST", path, {"metadata": {"name": name}, "webhooks": [hook, canary]})
        self._made.append(f"{path}/{name}")
        eventually(lambda: self._canary_was_called(f"{CANARY}{name}"))
        return self._server.requests(name)

    def remove(self) -> None:
        for path in self._made:
            self._api.ask("DELETE", path)

    def _hook(self, name: str, group: str, resource: str, answer: Answer) -> Object:
        rule = {
            "operations": ["CREATE", "UPDATE"],
            "apiGroups": [group],
            "apiVersions": ["v1"],
            "resources": [resource],
        }
        return {
            "name": f"{name}.example",
            "clientConfig": self._server.client_config(name, answer),
            "rules": [rule],
            "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": self._namespace}},
            "admissionReviewVersions": ["v1"],
            "sideEffects": "None",
        }

    def _canary_was_called(self, name: str) -> bool:
        """Whether a configuration is in force: the webhooks in it come into force together."""
        leases = self._api.collection("coordination.k8s.io/v1/leases", self._namespace)
        leases.create({"metadata": {"name": CANARY}}, dryRun="All")
        return bool(self._server.requests(name))
