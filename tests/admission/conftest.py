"""A real API server for admission: etcd and kube-apiserver, without controllers or nodes."""

import json
import ssl
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest

from tessera.admission import DEFAULT_SETTINGS, Webhook
from tessera.admission.manifests import UrlAddress, webhook_manifest
from tessera.vendors.loading import load_catalogue
from testbed.cluster import Cluster
from testbed.fixtures import NewCluster, clusters
from testbed.requirements import TestbedFailed
from tests.admission.server import WebhookServer
from tests.admission.waiting import eventually

CATALOGUE = load_catalogue()
Document = dict[str, Any]


class Api:
    def __init__(self, cluster: Cluster) -> None:
        self.cluster = cluster

    @property
    def host(self) -> str:
        """Where the API server reaches what a test serves."""
        return self.cluster.machine.addresses.host

    def apply(self, *documents: Document) -> None:
        self.cluster.kubectl("apply", "-f", "-", input=_json_lines(documents))

    def delete(self, *documents: Document) -> None:
        self.cluster.kubectl("delete", "--wait=false", "-f", "-", input=_json_lines(documents))

    def create(self, document: Document, *arguments: str, kubeconfig: Path | None = None) -> Document:
        options = ("-o", "json", *arguments)
        text = json.dumps(document)
        return json.loads(self.cluster.kubectl("create", "-f", "-", *options, input=text, kubeconfig=kubeconfig))

    def get(self, name: str, namespace: str) -> Document:
        return json.loads(self.cluster.kubectl("get", "pod", name, f"--namespace={namespace}", "-o", "json"))

    def refusal(self, *arguments: str, input: Document | None = None, kubeconfig: Path | None = None) -> str:
        """What kubectl says on stderr about something that must be refused."""
        text = json.dumps(input) if input else None
        with pytest.raises(TestbedFailed) as refused:
            self.cluster.kubectl(*arguments, input=text, kubeconfig=kubeconfig)
        return str(refused.value).partition("failed: ")[2]


def _json_lines(documents: tuple[Document, ...]) -> str:
    return json.dumps({"apiVersion": "v1", "kind": "List", "items": documents})


def make_namespace(api: Api, name: str) -> None:
    """A namespace with the default service account that pods want; no controller makes one here."""
    account = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "default", "namespace": name}}
    api.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}, account)


new_cluster = pytest.fixture(scope="package")(clusters)


@pytest.fixture(scope="package")
def admission_api(new_cluster: NewCluster) -> Api:
    api = Api(new_cluster(controllers=False))
    make_namespace(api, "kube-system")
    return api


@pytest.fixture
def namespace(admission_api: Api) -> str:
    name = f"test-{uuid4().hex[:8]}"
    make_namespace(admission_api, name)
    return name


@pytest.fixture(scope="module")
def serving_context(admission_api: Api) -> ssl.SSLContext:
    """A server's TLS, signed by the cluster's own authority."""
    authority = admission_api.cluster.control_plane.authority
    pair = authority.issue("webhook", "webhook", reachable_at=[admission_api.host])
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(pair.certificate, pair.key)
    return context


@pytest.fixture(scope="module")
def webhook(admission_api: Api, serving_context: ssl.SSLContext) -> Iterator[WebhookServer]:
    """Our webhook, in force."""
    server = WebhookServer(admission_api.host, serving_context, Webhook(CATALOGUE, DEFAULT_SETTINGS))
    authority = admission_api.cluster.control_plane.authority.files.certificate.read_bytes()
    manifest = webhook_manifest(CATALOGUE, DEFAULT_SETTINGS, UrlAddress(url=server.url), authority=authority)
    make_namespace(admission_api, "canary")
    with server.running():
        admission_api.apply(manifest)
        eventually(lambda: is_mutated(admission_api))
        yield server
    admission_api.delete(manifest)
    eventually(lambda: not is_mutated(admission_api))


def is_mutated(api: Api) -> bool:
    pod = api.create(a_pod("canary", "canary", limits={"nvidia.com/gpu": "1"}), "--dry-run=server")
    return pod["spec"]["schedulerName"] == "hami-scheduler"


def a_pod(name: str, namespace: str, *, limits: Any = None, **metadata: Any) -> Document:
    resources = {"resources": {"limits": limits}} if limits else {}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": namespace, **metadata},
        "spec": {"containers": [{"name": "train", "image": "none", **resources}]},
    }
