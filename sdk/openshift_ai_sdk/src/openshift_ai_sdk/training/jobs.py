"""MPIJobs at the API server, by the official client's `CustomObjectsApi`.

It is looked up at each call, so that tests may put another in its place; with another there, no cluster is needed.
"""

from collections.abc import Generator, Mapping
from contextlib import contextmanager
from typing import Any, Optional, cast
from urllib.parse import quote

from kubernetes import client
from kubernetes.client.api.custom_objects_api import CustomObjectsApi
from kubernetes.client.exceptions import ApiException
from urllib3.exceptions import HTTPError

from . import api
from .cluster import current_cluster
from .documents import GROUP, PLURAL, VERSION, Document, mapping_at, mappings_at, text_at
from .errors import api_error, is_about_the_kind, is_quota_refusal, message_of, raise_from

OFFICIAL: Any = CustomObjectsApi


def create(namespace: str, body: Document, *, dry_run: bool = False) -> Document:
    options: dict[str, Any] = {"dry_run": "All"} if dry_run else {}
    with _errors_explained():
        try:
            return _document(_call("create_namespaced_custom_object", namespace=namespace, body=body, **options))
        except ApiException as error:
            if is_quota_refusal(error):
                raise api_error(422, f"quota exceeded: {message_of(error)}") from error
            raise


def get(namespace: str, name: str, answer_s: float = api.ANSWER_S) -> Document:
    _check_named(name)
    with _errors_explained():
        found = _document(_call("get_namespaced_custom_object", answer_s, namespace=namespace, name=name))
    return _placed(found, namespace=namespace, name=name)


def list_all(namespace: str, label_selector: Optional[str]) -> list[Document]:
    options: dict[str, Any] = {"label_selector": label_selector} if label_selector else {}
    with _errors_explained():
        listed = _call("list_namespaced_custom_object", namespace=namespace, **options)
    return [_placed(one, namespace=namespace) for one in mappings_at(listed, "items")]


def delete(namespace: str, name: str) -> None:
    """What belongs to the job goes with it."""
    _check_named(name)
    with _errors_explained():
        _call("delete_namespaced_custom_object", namespace=namespace, name=name, propagation_policy="Background")


def set_suspended(namespace: str, name: str, suspended: bool) -> Document:
    _check_named(name)
    with _errors_explained():
        return api.merge(path_of(namespace, name), {"spec": {"runPolicy": {"suspend": suspended}}})


def path_of(namespace: str, name: str = "") -> str:
    above = f"/apis/{GROUP}/{VERSION}/namespaces/{quote(namespace, safe='')}/{PLURAL}"
    return f"{above}/{quote(name, safe='')}" if name else above


def _call(verb: str, answer_s: float = api.ANSWER_S, **arguments: object) -> object:
    untyped: Any = client
    cluster = current_cluster()
    if cluster.problem is not None and untyped.CustomObjectsApi is OFFICIAL:
        raise api_error(0, cluster.problem)
    custom = untyped.CustomObjectsApi(cluster.api_client)
    timeout_s = (api.CONNECT_S, answer_s)
    return getattr(custom, verb)(group=GROUP, version=VERSION, plural=PLURAL, **arguments, _request_timeout=timeout_s)


def _check_named(name: str) -> None:
    """The path of a job without a name would be that of all jobs of the namespace, and to delete it, to delete them."""
    if not name:
        raise api_error(404, "the MPIJob has no name, expected one such as 'my-job'; create() gives it one if need be")


def _document(answer: object) -> Document:
    return cast(Document, answer) if isinstance(answer, dict) else {}


def _placed(document: Mapping[str, Any], **known: str) -> Document:
    """With what was asked for. An API server says it too; the double of a test need not."""
    return {**document, "metadata": {**known, **mapping_at(document, "metadata")}}


@contextmanager
def _errors_explained() -> Generator[None, None, None]:
    try:
        yield
    except ApiException as error:
        why = _why_not_served() if is_about_the_kind(error) else ""
        if why:
            raise_from(error, why)
        raise
    except HTTPError as error:
        host = current_cluster().configuration.host
        raise api_error(0, f"{host} does not answer as an API server does: {error}") from error


def _why_not_served() -> str:
    """The cluster knows no MPIJobs of our version: does it know any? Nothing, if it was about something else."""
    try:
        versions = [text_at(one, "version") for one in mappings_at(api.get(f"/apis/{GROUP}"), "versions")]
        served = [one for one in versions if _serves_mpijobs(one)]
    except ApiException:
        served = []
    if VERSION in served:
        return ""
    if not served:
        return "the cluster serves no MPIJobs (kubeflow.org/v2beta1); install the MPI operator, or use `tessera up`"
    return (
        f"the cluster serves MPIJobs of {GROUP}/{', '.join(served)} only, expected {VERSION}; the CRD of the older "
        "training operator is in the place of the MPI operator's"
    )


def _serves_mpijobs(version: str) -> bool:
    resources = mappings_at(api.get(f"/apis/{GROUP}/{version}"), "resources")
    return any(text_at(one, "name") == PLURAL for one in resources)
