"""The Kubernetes API over plain HTTP: JSON in, JSON out, every status code visible.

It knows nothing of Tessera, and nothing of any resource beyond its path, so that a test says all it relies on.
"""

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple, Self
from urllib.parse import urlencode

import urllib3
import yaml

from tests.contract.watching import Watch

Object = dict[str, Any]
PATIENCE_S = 30

JSON_BOTH_WAYS = {"Accept": "application/json", "Content-Type": "application/json"}
JSON_PATCH = "application/json-patch+json"
MERGE_PATCH = "application/merge-patch+json"
STRATEGIC_PATCH = "application/strategic-merge-patch+json"
APPLY_PATCH = "application/apply-patch+yaml"


class Refused(Exception):
    """An answer of 400 or more, with the Status object that came with it."""

    def __init__(self, status: int, body: Any) -> None:
        super().__init__(f"{status}: {body}")
        self.status = status
        self.body = body

    @property
    def reason(self) -> str:
        return self.body["reason"]

    @property
    def message(self) -> str:
        return self.body["message"]

    @property
    def causes(self) -> list[Object]:
        return self.body["details"]["causes"]


class Answer(NamedTuple):
    """`body` is decoded JSON, or text, or bytes, whatever the server said that it was."""

    status: int
    headers: Mapping[str, str]
    body: Any


class Api:
    """One user's connection to the API server, as the kubeconfig describes it."""

    def __init__(self, kubeconfig: Path) -> None:
        document = yaml.safe_load(kubeconfig.read_text())
        cluster, user = document["clusters"][0]["cluster"], document["users"][0]["user"]
        self.url: str = cluster["server"]
        self._headers = {"Authorization": f"Bearer {user['token']}"} if "token" in user else {}
        self._pool = urllib3.PoolManager(
            ca_certs=cluster["certificate-authority"],
            cert_file=user.get("client-certificate"),
            key_file=user.get("client-key"),
            retries=False,
            timeout=PATIENCE_S,
            maxsize=4,  # a watch or two beside ordinary requests
        )

    def send(
        self,
        method: str,
        path: str,
        body: Any = None,
        *,
        query: Mapping[str, Any] | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> Answer:
        """One request and whatever was answered to it."""
        response = self._request(method, path, body, query=query, headers=headers)
        return Answer(response.status, response.headers, _decoded(response))

    def ask(self, method: str, path: str, body: Any = None, **more: Any) -> Any:
        """One request that is expected to be granted, and the body of the answer."""
        answer = self.send(method, path, body, **more)
        if answer.status >= 400:
            raise Refused(answer.status, answer.body)
        return answer.body

    def get(self, path: str, **query: Any) -> Any:
        return self.ask("GET", path, query=query)

    @contextmanager
    def stream(self, path: str, *, query: Mapping[str, Any] | None = None) -> Iterator[Iterator[bytes]]:
        """The lines of an answer as they arrive."""
        response = self._request("GET", path, query=query, preload_content=False)
        try:
            if response.status >= 400:
                raise Refused(response.status, json.loads(response.read()))
            yield iter(response)
        finally:
            response.close()

    def collection(self, resource: str, namespace: str | None = None) -> "Collection":
        """`pods`, or with its group and version `apps/v1/deployments`."""
        group_version, _, plural = resource.rpartition("/")
        prefix = f"/apis/{group_version}" if group_version else "/api/v1"
        return Collection(self, f"{prefix}/namespaces/{namespace}/{plural}" if namespace else f"{prefix}/{plural}")

    def _request(
        self,
        method: str,
        path: str,
        body: Any = None,
        *,
        query: Mapping[str, Any] | None = None,
        headers: Mapping[str, str] | None = None,
        preload_content: bool = True,
    ) -> urllib3.BaseHTTPResponse:
        return self._pool.request(
            method,
            self.url + path + (f"?{urlencode(query)}" if query else ""),
            body=None if body is None else json.dumps(body).encode(),
            headers=JSON_BOTH_WAYS | self._headers | dict(headers or {}),
            preload_content=preload_content,
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._pool.clear()


class Collection:
    """The objects of one kind, in one namespace or in all. A name may be followed by a subresource: `web/scale`."""

    def __init__(self, api: Api, path: str) -> None:
        self.api = api
        self.path = path

    def create(self, body: Object, **query: Any) -> Object:
        return self.api.ask("POST", self.path, body, query=query)

    def get(self, name: str, **query: Any) -> Any:
        return self.api.get(f"{self.path}/{name}", **query)

    def listing(self, **query: Any) -> Object:
        return self.api.get(self.path, **query)

    def names(self, **query: Any) -> list[str]:
        return [item["metadata"]["name"] for item in self.listing(**query)["items"]]

    def replace(self, name: str, body: Object, **query: Any) -> Object:
        return self.api.ask("PUT", f"{self.path}/{name}", body, query=query)

    def post(self, name: str, body: Object, **query: Any) -> Object:
        """Ask something of an object through one of its subresources."""
        return self.api.ask("POST", f"{self.path}/{name}", body, query=query)

    def patch(self, name: str, kind: str, body: Any, **query: Any) -> Object:
        return self.api.ask("PATCH", f"{self.path}/{name}", body, query=query, headers={"Content-Type": kind})

    def apply(self, name: str, body: Object, *, manager: str, force: bool = False) -> Object:
        query = {"fieldManager": manager, "force": str(force).lower()}
        return self.patch(name, APPLY_PATCH, body, **query)

    def delete(self, name: str, options: Object | None = None, **query: Any) -> Object:
        return self.api.ask("DELETE", f"{self.path}/{name}", options, query=query)

    def delete_all(self, **query: Any) -> Object:
        return self.api.ask("DELETE", self.path, query=query)

    def exists(self, name: str) -> bool:
        return self.api.send("GET", f"{self.path}/{name}").status == 200

    @contextmanager
    def watch(self, **query: Any) -> Iterator[Watch]:
        """What happens from now on, or from `resourceVersion`; it ends when the block is left."""
        with self.api.stream(self.path, query={"watch": "true"} | query) as lines:
            yield Watch(lines)


def _decoded(response: urllib3.BaseHTTPResponse) -> Any:
    kind = response.headers.get("Content-Type", "text/plain")
    if kind.startswith("application/json"):
        return response.json()
    return response.data.decode() if kind.startswith("text/") else response.data
