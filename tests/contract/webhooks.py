"""A server of admission webhooks inside the test process, and the configurations that send an API server to it."""

import base64
import json
import ssl
from collections.abc import Callable
from pathlib import Path
from typing import Any

from testbed.certificates import Authority
from tests.contract.api import Api, Object
from tests.contract.waiting import eventually
from tests.https_server import HttpsServer, Said

Answer = Callable[[Object], Object]
ALLOWED: Object = {"allowed": True}
CANARY = "canary"


def patch_with(*operations: Object) -> Object:
    """Allow the request with these JSON patch operations."""
    patch = base64.b64encode(json.dumps(operations).encode()).decode()
    return ALLOWED | {"patchType": "JSONPatch", "patch": patch}


class WebhookServer(HttpsServer):
    """Answers each AdmissionReview with the function that was registered for its path, and remembers the request."""

    def __init__(self, host: str, directory: Path) -> None:
        authority = Authority(directory, "webhook-ca")
        serving = authority.issue("webhook", "webhook", reachable_at=[host])
        self.bundle = base64.b64encode(authority.files.certificate.read_bytes()).decode()
        self._answers: dict[str, Answer] = {}
        self._requests: dict[str, list[Object]] = {}
        context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        context.load_cert_chain(serving.certificate, serving.key)
        super().__init__(host, context, self._review)

    def client_config(self, name: str, answer: Answer) -> Object:
        """Where an API server finds this answer."""
        self._answers[f"/{name}"] = answer
        self._requests[f"/{name}"] = []
        return {"url": f"{self.url}/{name}", "caBundle": self.bundle}

    def requests(self, name: str) -> list[Object]:
        """Every AdmissionRequest that came for this name."""
        return self._requests[f"/{name}"]

    def _review(self, path: str, body: bytes) -> Said:
        review = json.loads(body)
        request = review["request"]
        self._requests[path].append(request)
        response = {"uid": request["uid"]} | self._answers[path](request)
        answer = {key: review[key] for key in ("apiVersion", "kind")} | {"response": response}
        return Said(200, json.dumps(answer).encode())


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
