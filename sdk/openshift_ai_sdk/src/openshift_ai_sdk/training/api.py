"""Requests to the API server beside those about MPIJobs: pods, their logs, events, quotas, and watches of anything.

The official client knows no `sinceTime` for logs, without which a log cannot be resumed, and builds slow objects of
lists that are read once. What has not changed between its versions are its connection pool, which knows certificates
and proxies, and its configuration, which knows who we are. So requests are made of those two, and fail as the official
client's do: by an `ApiException`.
"""

import json
from collections.abc import Iterator, Mapping
from typing import Any, Optional
from urllib.parse import quote, urlencode

import urllib3
from kubernetes.client.exceptions import ApiException
from urllib3.exceptions import HTTPError

from .cluster import Cluster, current_cluster
from .documents import Document
from .errors import api_error
from .stopping import reading

CONNECT_S = 5.0
ANSWER_S = 30.0
TRANSIENT = frozenset({0, 429, 500, 502, 503, 504})
"""Answers that another attempt may better; 0 is none at all."""


class Answer:
    """What the official client builds its exceptions from."""

    def __init__(self, response: Any, data: bytes) -> None:
        self.status: int = response.status
        self.reason: Optional[str] = response.reason
        self.headers: Mapping[str, str] = response.headers
        self.data = data.decode(errors="replace")

    def getheaders(self) -> Mapping[str, str]:
        return self.headers


def get(path: str, query: Optional[Mapping[str, object]] = None, answer_s: float = ANSWER_S) -> Document:
    return _read(_ask("GET", path, query, answer_s))


def text(path: str, query: Optional[Mapping[str, object]] = None) -> str:
    return _ask("GET", path, query, ANSWER_S).decode(errors="replace")


def merge(path: str, change: Document) -> Document:
    """A merge patch. The official client chooses a form of patch that custom resources refuse, in some versions."""
    return _read(_ask("PATCH", path, None, ANSWER_S, json.dumps(change), "application/merge-patch+json"))


def lines(path: str, query: Mapping[str, object], quiet_s: float) -> Iterator[bytes]:
    """Each with its newline, as they come; the last may be cut short. To be quiet for `quiet_s` is an error."""
    cluster = _usable_cluster()
    response = _send(cluster, "GET", path, query, quiet_s, None, {})
    with reading(response):
        if response.status != 200:
            raise answered(Answer(response, response.data))
        try:
            yield from _split(response)
        except HTTPError as error:
            raise _unreachable(cluster, error) from error


def in_namespace(namespace: str, kind: str, name: str = "", *more: str) -> str:
    """The path of something in the core group."""
    return "/".join(part for part in (f"/api/v1/namespaces/{quote(namespace)}/{kind}", quote(name), *more) if part)


def answered(answer: Answer) -> ApiException:
    """Of the class that this version of the official client has for the status."""
    untyped: Any = ApiException
    error: Any = None
    if hasattr(untyped, "from_response"):
        try:
            error = untyped.from_response(http_resp=answer, body=answer.data, data=None)
        except ApiException as raised:
            error = raised
    else:
        error = untyped(http_resp=answer)
    error.body = answer.data
    return error


def is_reachable() -> bool:
    """Whether anybody has said where the cluster is."""
    return current_cluster().problem is None


def _ask(
    method: str,
    path: str,
    query: Optional[Mapping[str, object]],
    answer_s: float,
    body: Optional[str] = None,
    content_type: str = "",
) -> bytes:
    cluster = _usable_cluster()
    response = _send(cluster, method, path, query or {}, answer_s, body, {"Content-Type": content_type} if body else {})
    with reading(response):
        try:
            data: bytes = response.data
        except HTTPError as error:
            raise _unreachable(cluster, error) from error
    if not 200 <= response.status <= 299:
        raise answered(Answer(response, data))
    return data


def _usable_cluster() -> Cluster:
    cluster = current_cluster()
    if cluster.problem is not None:
        raise api_error(0, cluster.problem)
    return cluster


def _send(
    cluster: Cluster,
    method: str,
    path: str,
    query: Mapping[str, object],
    quiet_s: float,
    body: Optional[str],
    headers: dict[str, str],
) -> Any:
    pool: urllib3.PoolManager = cluster.api_client.rest_client.pool_manager
    url = f"{str(cluster.configuration.host).rstrip('/')}{path}" + (f"?{urlencode(query)}" if query else "")
    timeout = urllib3.Timeout(connect=CONNECT_S, read=quiet_s)
    own = {**_credentials(cluster.configuration), **headers}
    try:
        return pool.request(method, url, body=body, headers=own, timeout=timeout, preload_content=False)
    except HTTPError as error:
        raise _unreachable(cluster, error) from error


def _credentials(configuration: Any) -> dict[str, str]:
    """Asked for with every request: a token may have been renewed."""
    settings = [one for one in configuration.auth_settings().values() if one["in"] == "header" and one["value"]]
    return {"Accept": "application/json, */*", **{one["key"]: one["value"] for one in settings}}


def _split(response: Any) -> Iterator[bytes]:
    rest = b""
    for piece in response.stream(1 << 16):
        *whole, rest = (rest + piece).split(b"\n")
        yield from (line + b"\n" for line in whole)
    if rest:
        yield rest


def _read(data: bytes) -> Document:
    try:
        return json.loads(data)
    except ValueError as error:
        raise _unreachable(current_cluster(), error) from error


def _unreachable(cluster: Cluster, error: Exception) -> ApiException:
    return api_error(0, f"{cluster.configuration.host} does not answer as an API server does: {error}")
