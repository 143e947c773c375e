"""The few requests that this package sends to the Kubernetes API server.

How a request of one's own is sent has changed more than once between versions 29 and 37 of the official client. What
stayed is its connection pool, which knows certificates and proxies, and its configuration, which knows who we are. So
requests are made from those two, and fail as the official client's do: with an `ApiException`.

Nothing here waits for ever: a request has a deadline over all its attempts. And all of them may be repeated.
"""

import json
import os
import time
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple, NoReturn
from urllib.parse import urlencode

import urllib3
from kubernetes import client
from urllib3.exceptions import HTTPError

from kpu import __version__

Object = dict[str, Any]

CONNECT_S = 5.0
DEADLINE_S = 20.0
ATTEMPTS = 3
FIRST_PAUSE_S = 0.2
BUSY = frozenset({429, 500, 502, 503, 504})
"""Answers that another attempt may better."""


class Answer(NamedTuple):
    """What the official client builds its exceptions from."""

    status: int
    reason: str | None
    data: bytes
    headers: Mapping[str, str]

    def getheaders(self) -> Mapping[str, str]:
        return self.headers


class Api:
    """Requests to one API server as one user. May be used by several threads."""

    def __init__(self, configuration: client.Configuration) -> None:
        self.configuration = configuration
        self.url: str = str(configuration.host).rstrip("/")
        self._pools = {os.getpid(): self._connections()}

    def get(self, path: str, query: Mapping[str, str] | None = None, deadline_s: float = DEADLINE_S) -> Object:
        return self._ask("GET", path, query or {}, deadline_s)

    def apply(self, path: str, body: Object, manager: str) -> Object:
        """Server-side apply. Who else owns a field that `body` mentions loses it."""
        query = {"fieldManager": manager, "force": "true"}
        return self._ask("PATCH", path, query, DEADLINE_S, body, "application/apply-patch+yaml")

    def merge(self, path: str, body: Object, manager: str) -> Object:
        return self._ask("PATCH", path, {"fieldManager": manager}, DEADLINE_S, body, "application/merge-patch+json")

    def delete(self, path: str, options: Object) -> Object:
        return self._ask("DELETE", path, {}, DEADLINE_S, options)

    def watch(self, path: str, query: Mapping[str, str], quiet_s: float) -> Iterator[Object]:
        """Events as they come, until the server ends the watch; more than `quiet_s` without a byte is an error."""
        url = f"{self.url}{path}?{urlencode({**query, 'watch': 'true', 'allowWatchBookmarks': 'true'})}"
        timeout = urllib3.Timeout(connect=min(CONNECT_S, quiet_s), read=quiet_s)
        try:
            answer = self._pool.request(
                "GET", url, headers=self.headers(), timeout=timeout, retries=False, preload_content=False
            )
        except HTTPError as error:
            self._raise_unreachable(error)
        try:
            if answer.status != 200:
                raise api_error(Answer(answer.status, answer.reason, answer.data, answer.headers))
            yield from (json.loads(line) for line in _lines(answer))
        except (HTTPError, ValueError) as error:
            self._raise_unreachable(error)
        finally:
            answer.close()

    def headers(self) -> dict[str, str]:
        """Asked for with every request: a token may have been renewed."""
        headers = {"Accept": "application/json", "User-Agent": f"kpu-client/{__version__}"}
        configuration: Any = self.configuration
        for setting in configuration.auth_settings().values():
            if setting["in"] == "header" and setting["value"]:
                headers[setting["key"]] = setting["value"]
        return headers

    @property
    def _pool(self) -> urllib3.PoolManager:
        """Of this very process: on shared connections a forked child and its parent would read each other's answers."""
        return self._pools.get(os.getpid()) or self._pools.setdefault(os.getpid(), self._connections())

    def _connections(self) -> urllib3.PoolManager:
        return client.ApiClient(self.configuration).rest_client.pool_manager  # pyright: ignore[reportUnknownMemberType]

    def _ask(
        self,
        method: str,
        path: str,
        query: Mapping[str, str],
        deadline_s: float,
        body: Object | None = None,
        content_type: str = "application/json",
    ) -> Object:
        url = f"{self.url}{path}?{urlencode(query)}" if query else f"{self.url}{path}"
        content = None if body is None else json.dumps(body).encode()
        until_s = time.monotonic() + deadline_s
        for attempt in range(ATTEMPTS):
            pause_s = FIRST_PAUSE_S * 2**attempt
            try:
                answer = self._send(method, url, content, content_type, until_s)
            except HTTPError as error:
                if _is_last(attempt, pause_s, until_s):
                    self._raise_unreachable(error)
            else:
                if answer.status not in BUSY or _is_last(attempt, pause_s, until_s):
                    return self._content_of(answer)
            time.sleep(pause_s)
        raise AssertionError("the last attempt has returned or raised")

    def _send(self, method: str, url: str, content: bytes | None, content_type: str, until_s: float) -> Answer:
        left_s = max(until_s - time.monotonic(), 0.1)
        headers = self.headers() if content is None else {**self.headers(), "Content-Type": content_type}
        timeout = urllib3.Timeout(connect=min(CONNECT_S, left_s), read=left_s)
        answer = self._pool.request(method, url, body=content, headers=headers, timeout=timeout, retries=False)
        return Answer(answer.status, answer.reason, answer.data, answer.headers)

    def _content_of(self, answer: Answer) -> Object:
        if not 200 <= answer.status <= 299:
            raise api_error(answer)
        try:
            return json.loads(answer.data)
        except ValueError as error:
            self._raise_unreachable(error)

    def _raise_unreachable(self, error: HTTPError | ValueError) -> NoReturn:
        raise client.ApiException(
            status=0, reason=f"{self.url} does not answer as an API server does: {error}"
        ) from error


def api_error(answer: Answer) -> client.ApiException:
    """Of the class that this version of the official client has for the status."""
    text = answer.data.decode(errors="replace")
    error = _error_of_its_class(answer, text)
    error.body = text
    return error


def status_of(error: client.ApiException) -> int:
    """The answer's, or 0 if there was none."""
    return int(_untyped(error).status or 0)


def message_of(error: client.ApiException) -> str:
    """The server's own sentence."""
    try:
        return str(_said(error)["message"])
    except (ValueError, TypeError, KeyError):
        return str(_untyped(error).body or _untyped(error).reason).strip()


def names_an_object(error: client.ApiException) -> bool:
    """Whether it is about a particular object, and so about a kind that the server knows."""
    try:
        return bool(_said(error)["details"]["name"])
    except (ValueError, TypeError, KeyError):
        return False


def _said(error: client.ApiException) -> Any:
    return json.loads(_untyped(error).body or "")


def _untyped(error: client.ApiException) -> Any:
    """The official client's types are half known, and differ between its versions."""
    return error


def _error_of_its_class(answer: Answer, text: str) -> client.ApiException:
    untyped: Any = client.ApiException
    if not hasattr(untyped, "from_response"):
        return untyped(http_resp=answer)
    try:
        return untyped.from_response(http_resp=answer, body=text, data=None)
    except client.ApiException as error:
        return error


def _is_last(attempt: int, pause_s: float, until_s: float) -> bool:
    return attempt == ATTEMPTS - 1 or time.monotonic() + pause_s >= until_s


def _lines(answer: urllib3.BaseHTTPResponse) -> Iterator[bytes]:
    rest = b""
    for piece in answer.stream(1 << 16):
        *whole, rest = (rest + piece).split(b"\n")
        yield from (line for line in whole if line.strip())
