"""A real API server for the tests of `tessera.kube`: etcd and kube-apiserver, without controllers or nodes.

`api` is all that the tests know of it. The server is started once for the folder; each test has a namespace of its own.
"""

import asyncio
import json
import urllib.request
from collections.abc import AsyncIterator
from pathlib import Path
from uuid import uuid4

import pytest
import pytest_asyncio

from tessera.kube.access import Access, find_access
from tessera.kube.client import Client
from tessera.kube.kinds import NAMESPACES, SERVICE_ACCOUNTS
from testbed.cluster import Cluster
from testbed.fixtures import NewCluster, clusters
from testbed.program import Program
from tests.kube.proxy import Proxy


class Api:
    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster

    @property
    def kubeconfig(self) -> Path:
        return self._cluster.kubeconfig

    @property
    def access(self) -> Access:
        return find_access(self.kubeconfig)

    @property
    def host_address(self) -> str:
        """Where the API server reaches what a test serves."""
        return self._cluster.machine.addresses.host

    def kubeconfig_for(self, user: str) -> Path:
        return self._cluster.control_plane.kubeconfig_for(user)

    @property
    def admin_certificate(self) -> tuple[Path, Path]:
        return self._cluster.control_plane.admin

    def client_certificate(self, user: str) -> tuple[Path, Path]:
        return self._cluster.control_plane.client_certificate(user)

    def serving_certificate(self) -> tuple[Path, Path]:
        """Certificate and key for a server at `host_address`, signed by the cluster's authority."""
        authority = self._cluster.control_plane.authority
        return authority.issue("test-server", "test-server", reachable_at=[self.host_address, "127.0.0.1"])

    def kubectl(self, *arguments: str) -> str:
        return self._cluster.kubectl(*arguments)

    async def stop(self) -> None:
        """End the API server as a crash would."""
        await asyncio.to_thread(self._apiserver.kill)

    async def start(self) -> None:
        await asyncio.to_thread(self._start)

    async def compact_etcd(self, resource_version: str) -> None:
        """Make etcd forget all that was before, through the JSON form of its API."""
        await asyncio.to_thread(self._post_to_etcd, "/v3/kv/compaction", {"revision": resource_version})

    def _start(self) -> None:
        self._apiserver.restart()
        self._cluster.control_plane.wait_until_ready()

    @property
    def _apiserver(self) -> Program:
        return self._cluster.machine.programs["kube-apiserver"]

    def _post_to_etcd(self, path: str, body: dict[str, str]) -> None:
        request = urllib.request.Request(
            self._cluster.control_plane.etcd_url + path, json.dumps(body).encode(), method="POST"
        )
        urllib.request.urlopen(request, timeout=10).close()


new_cluster = pytest.fixture(scope="package")(clusters)


@pytest.fixture(scope="package")
def api(new_cluster: NewCluster) -> Api:
    return Api(new_cluster(controllers=False))


@pytest.fixture
def access(api: Api) -> Access:
    return api.access


@pytest_asyncio.fixture
async def client(api: Api) -> AsyncIterator[Client]:
    async with Client(api.access) as client:
        yield client


@pytest_asyncio.fixture
async def namespace(client: Client) -> AsyncIterator[str]:
    """A new namespace with the default service account that pods want; no controller makes one here."""
    name = f"test-{uuid4().hex[:8]}"
    await client.create(NAMESPACES, {"metadata": {"name": name}})
    await client.create(SERVICE_ACCOUNTS, {"metadata": {"name": "default"}}, namespace=name)
    yield name
    await client.delete(NAMESPACES, name)


@pytest_asyncio.fixture
async def proxy(api: Api) -> AsyncIterator[Proxy]:
    async with Proxy(api.access.server) as proxy:
        yield proxy
