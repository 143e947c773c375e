"""Where Prometheus is, and one query to it.

What the caller names comes first, then the environment. Otherwise it is looked for: OpenShift's querier by its Route
or, in a pod, by its Service; else a Service that says it is Prometheus, through the API server. The cluster's token is
shown to nobody but the cluster's own querier.
"""

import json
import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple, Optional
from urllib.parse import urlencode

import urllib3
from kubernetes.client.exceptions import ApiException
from urllib3.exceptions import HTTPError

from . import api
from .cluster import current_cluster
from .documents import mappings_at, text_at
from .errors import api_error

URL_VARIABLE, TOKEN_VARIABLE, CA_VARIABLE = "PROMETHEUS_URL", "PROMETHEUS_TOKEN", "PROMETHEUS_CA_FILE"
ACCOUNT = Path("/var/run/secrets/kubernetes.io/serviceaccount")
OPENSHIFT_NAMESPACE, QUERIER = "openshift-monitoring", "thanos-querier"
IN_CLUSTER_QUERIER = f"https://{QUERIER}.{OPENSHIFT_NAMESPACE}.svc:9091"
ROUTE = f"/apis/route.openshift.io/v1/namespaces/{OPENSHIFT_NAMESPACE}/routes/{QUERIER}"
IS_PROMETHEUS = "app.kubernetes.io/name=prometheus"
TIMEOUT_S = 15.0


class Endpoint(NamedTuple):
    """`proxied` is a path at the API server, in place of a URL of one's own."""

    url: str
    token: Optional[str] = None
    ca_file: Optional[str] = None
    proxied: bool = False


def find_prometheus(url: Optional[str], token: Optional[str], ca_file: Optional[str]) -> Endpoint:
    """Raises ApiException where none is found."""
    named = url or os.environ.get(URL_VARIABLE)
    token = token or os.environ.get(TOKEN_VARIABLE) or None
    ca_file = ca_file or os.environ.get(CA_VARIABLE) or None
    if named:
        return Endpoint(named.rstrip("/"), token, ca_file)
    found = _openshift(token, ca_file) or _in_a_service()
    if found is None:
        raise api_error(
            503, f"no Prometheus was found in the cluster; name it: get_metrics(prometheus_url=...) or {URL_VARIABLE}"
        )
    return found


def query(endpoint: Endpoint, expression: str) -> list[Mapping[str, Any]]:
    """The samples of an instant vector. Raises ApiException for whatever is no answer."""
    form = urlencode({"query": expression})
    try:
        answer: object = json.loads(_through_the_api(endpoint, form) if endpoint.proxied else _directly(endpoint, form))
    except ValueError as error:
        raise api_error(502, f"{endpoint.url} does not answer as Prometheus does: {error}") from error
    if text_at(answer, "status") != "success":
        raise api_error(502, f"Prometheus at {endpoint.url} refused a query: {text_at(answer, 'error') or answer}")
    return mappings_at(answer, "data", "result")


def _directly(endpoint: Endpoint, form: str) -> bytes:
    headers = {"Content-Type": "application/x-www-form-urlencoded", "Accept": "application/json"}
    if endpoint.token:
        headers["Authorization"] = f"Bearer {endpoint.token}"
    trust: dict[str, Any] = {"ca_certs": endpoint.ca_file} if endpoint.ca_file else {}
    timeout = urllib3.Timeout(connect=api.CONNECT_S, read=TIMEOUT_S)
    try:
        with urllib3.PoolManager(**trust) as pool:
            response = pool.request(
                "POST", f"{endpoint.url}/api/v1/query", body=form, headers=headers, timeout=timeout, retries=False
            )
    except (HTTPError, OSError, ValueError) as error:
        raise api_error(503, f"Prometheus at {endpoint.url} cannot be reached: {error}") from error
    if response.status != 200:
        failed = api.answered(api.Answer(response, response.data))
        failed.reason = f"Prometheus at {endpoint.url} answered {response.status}: {_words(response.data)}"
        raise failed
    return response.data


def _through_the_api(endpoint: Endpoint, form: str) -> bytes:
    return api.text(f"{endpoint.url}/api/v1/query?{form}").encode()


def _openshift(token: Optional[str], ca_file: Optional[str]) -> Optional[Endpoint]:
    """Only its paths below /api answer, and only to a bearer token."""
    if (ACCOUNT / "service-ca.crt").exists():
        own = ca_file or str(ACCOUNT / "service-ca.crt")
        return Endpoint(IN_CLUSTER_QUERIER, token or _account_token(), own)
    try:
        host = text_at(api.get(ROUTE), "spec", "host")
    except ApiException:
        return None
    return Endpoint(f"https://{host}", token or _own_token(), ca_file) if host else None


def _in_a_service() -> Optional[Endpoint]:
    try:
        services = mappings_at(api.get("/api/v1/services", {"labelSelector": IS_PROMETHEUS}), "items")
    except ApiException:
        return None
    return next((Endpoint(path, proxied=True) for one in services for path in _proxy_paths(one)), None)


def _proxy_paths(service: Mapping[str, Any]) -> Iterator[str]:
    namespace, name = text_at(service, "metadata", "namespace"), text_at(service, "metadata", "name")
    for port in mappings_at(service, "spec", "ports"):
        if port.get("port") in (80, 9090):
            yield f"/api/v1/namespaces/{namespace}/services/{name}:{port['port']}/proxy"


def _account_token() -> Optional[str]:
    try:
        return (ACCOUNT / "token").read_text(encoding="utf-8").strip() or None
    except OSError:
        return None


def _own_token() -> Optional[str]:
    """Whoever is logged in with `oc login` has one in the kubeconfig."""
    settings = current_cluster().configuration.auth_settings().values()
    shown = [str(one["value"]) for one in settings if one["key"].lower() == "authorization" and one["value"]]
    return shown[0].split(" ", 1)[1] if shown and shown[0].lower().startswith("bearer ") else None


def _words(data: bytes) -> str:
    return " ".join(data.decode(errors="replace").split())[:300]
