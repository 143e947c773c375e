"""Every way to say who we are and whom we believe, on a real API server."""

import asyncio
import base64
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import msgspec
import pytest
import yaml

from tessera.errors import Unauthorized, Unreachable
from tessera.kube.access import Access, find_access, in_cluster_access
from tessera.kube.client import Client
from tessera.kube.credentials import Credential, ReadCredentials, bearer
from tessera.kube.kinds import SECRETS, SERVICE_ACCOUNTS, kind_of
from tessera.kube.objects import Document
from tests.kube.conftest import Api
from tests.kube.proxy import Proxy

pytestmark = pytest.mark.asyncio
REVIEWS = kind_of("authentication.k8s.io", "v1", "selfsubjectreviews", "SelfSubjectReview", namespaced=False)
V1 = "client.authentication.k8s.io/v1"


async def who_am_i(client: Client) -> str:
    review = await client.create(REVIEWS, {"kind": "SelfSubjectReview", "apiVersion": "authentication.k8s.io/v1"})
    return review["status"]["userInfo"]["username"]


async def name_by(access: Access) -> str:
    async with Client(access) as client:
        return await who_am_i(client)


class Kubeconfigs:
    """Writes kubeconfigs that differ from the administrator's in a cluster or a user."""

    def __init__(self, api: Api, folder: Path) -> None:
        self._document: Document = yaml.safe_load(api.kubeconfig.read_text())
        self._base, self.folder = api.kubeconfig.parent, folder

    def access(self, *, cluster: Document | None = None, user: Document | None = None) -> Access:
        document = json.loads(json.dumps(self._document))
        document["clusters"][0]["cluster"].update(cluster or {})
        if user is not None:
            document["users"][0]["user"] = user
        kept = {name: value for name, value in document["clusters"][0]["cluster"].items() if value is not None}
        document["clusters"][0]["cluster"] = kept
        path = self.folder / "config"
        path.write_text(yaml.safe_dump(document))
        return find_access(path)


@pytest.fixture
def kubeconfigs(api: Api, tmp_path: Path) -> Kubeconfigs:
    return Kubeconfigs(api, tmp_path)


class Account:
    """A service account and tokens for it, each of which can be revoked."""

    def __init__(self, client: Client, namespace: str) -> None:
        self._client, self._namespace = client, namespace

    async def issue(self, name: str) -> str:
        """A token that is good for as long as the secret of this name exists."""
        secret = await self._client.create(SECRETS, {"metadata": {"name": name}}, namespace=self._namespace)
        bound = {"kind": "Secret", "apiVersion": "v1", "name": name, "uid": secret["metadata"]["uid"]}
        body = {"spec": {"audiences": [], "boundObjectRef": bound}}
        made = await self._client.create_under(SERVICE_ACCOUNTS, "default", "token", body, namespace=self._namespace)
        return made["status"]["token"]

    async def revoke(self, name: str, token: str, access: Access) -> None:
        """Returns when the API server, which remembers good tokens for ten seconds, refuses this one."""
        await self._client.delete(SECRETS, name, namespace=self._namespace)
        async with Client(with_token(access, token)) as holder:
            while await is_accepted(holder):
                await asyncio.sleep(0.2)


def with_token(access: Access, token: str) -> Access:
    return msgspec.structs.replace(access, credentials=ReadCredentials(lambda: Credential((bearer(token),))))


async def is_accepted(client: Client) -> bool:
    try:
        await who_am_i(client)
    except Unauthorized:
        return False
    return True


@pytest.fixture
def account(client: Client, namespace: str) -> Account:
    return Account(client, namespace)


async def test_a_client_certificate_from_files_or_data(api: Api, kubeconfigs: Kubeconfigs) -> None:
    pair = api.client_certificate("jane")
    files = {"client-certificate": str(pair[0]), "client-key": str(pair[1])}
    data = {f"{name}-data": base64.b64encode(Path(path).read_bytes()).decode() for name, path in files.items()}

    assert await name_by(kubeconfigs.access(user=files)) == "jane"
    assert await name_by(kubeconfigs.access(user=data)) == "jane"


async def test_a_token(kubeconfigs: Kubeconfigs, account: Account, namespace: str) -> None:
    access = kubeconfigs.access(user={"token": await account.issue("one")})

    assert await name_by(access) == f"system:serviceaccount:{namespace}:default"


async def test_whom_to_act_as(api: Api, kubeconfigs: Kubeconfigs) -> None:
    pair = api.admin_certificate
    user = {"client-certificate": str(pair[0]), "client-key": str(pair[1]), "as": "jane"}

    assert await name_by(kubeconfigs.access(user=user)) == "jane"


async def test_an_authority_that_did_not_sign_is_not_believed(kubeconfigs: Kubeconfigs) -> None:
    with pytest.raises(Unreachable, match="certificate"):
        await name_by(kubeconfigs.access(cluster={"certificate-authority": None}))


async def test_no_authority_is_needed_where_the_kubeconfig_says_so(kubeconfigs: Kubeconfigs) -> None:
    cluster = {"certificate-authority": None, "insecure-skip-tls-verify": True}

    assert await name_by(kubeconfigs.access(cluster=cluster)) == "kubernetes-admin"


async def test_the_name_that_the_server_has_to_prove(kubeconfigs: Kubeconfigs) -> None:
    right, wrong = {"tls-server-name": "kubernetes.default.svc"}, {"tls-server-name": "elsewhere"}

    assert await name_by(kubeconfigs.access(cluster=right)) == "kubernetes-admin"
    with pytest.raises(Unreachable, match="elsewhere"):
        await name_by(kubeconfigs.access(cluster=wrong))


async def test_a_proxy_between_us_and_the_server(kubeconfigs: Kubeconfigs) -> None:
    tunnelled: list[str] = []
    async with await asyncio.start_server(a_tunnel(tunnelled), "127.0.0.1", 0) as server:
        port = server.sockets[0].getsockname()[1]
        access = kubeconfigs.access(cluster={"proxy-url": f"http://127.0.0.1:{port}"})
        name = await name_by(access)

    assert (name, tunnelled) == ("kubernetes-admin", [urlsplit(access.server).netloc])


def a_tunnel(tunnelled: list[str]) -> Callable[[asyncio.StreamReader, asyncio.StreamWriter], Any]:
    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        request = (await reader.readuntil(b"\r\n\r\n")).split()
        tunnelled.append(request[1].decode())
        host, port = request[1].decode().split(":")
        onward_reader, onward = await asyncio.open_connection(host, int(port))
        writer.write(b"HTTP/1.1 200 Connection established\r\n\r\n")
        async with asyncio.TaskGroup() as group:
            group.create_task(pour(reader, onward))
            group.create_task(pour(onward_reader, writer))

    return serve


async def pour(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    while data := await reader.read(1 << 16):
        writer.write(data)
    writer.close()


async def test_a_pod_is_its_service_account_also_after_its_token_was_rotated(
    access: Access, account: Account, namespace: str, tmp_path: Path
) -> None:
    url = urlsplit(access.server)
    (tmp_path / "ca.crt").write_bytes(access.trust.authorities or b"")
    (tmp_path / "namespace").write_text(namespace)
    first = await account.issue("one")
    (tmp_path / "token").write_text(first)
    environment = {"KUBERNETES_SERVICE_HOST": str(url.hostname), "KUBERNETES_SERVICE_PORT": str(url.port)}

    async with Client(in_cluster_access(folder=tmp_path, environment=environment)) as client:
        names = [await who_am_i(client)]
        (tmp_path / "token").write_text(await account.issue("two"))
        await account.revoke("one", first, access)
        names.append(await who_am_i(client))

    assert names == [f"system:serviceaccount:{namespace}:default"] * 2
    assert client.namespace == namespace


async def test_a_revoked_token_without_a_next_one_is_unauthorized(access: Access, account: Account) -> None:
    token = await account.issue("one")
    await account.revoke("one", token, access)

    with pytest.raises(Unauthorized, match="renew the credentials"):
        await name_by(with_token(access, token))


def a_plugin(folder: Path, script: str) -> Document:
    file = folder / "plugin"
    file.write_text(f"#!/bin/sh\ncd {folder}; echo run >> runs; RUN=$(wc -l < runs)\n{script}\n")
    file.chmod(0o755)
    return {"exec": {"apiVersion": V1, "command": "./plugin", "interactiveMode": "Never"}}


async def test_a_plugin_hands_out_the_next_token_when_the_last_is_refused(
    access: Access, kubeconfigs: Kubeconfigs, account: Account, namespace: str
) -> None:
    tokens = {"one": await account.issue("one"), "two": await account.issue("two")}
    for number, token in enumerate(tokens.values(), 1):
        answer = {"apiVersion": V1, "kind": "ExecCredential", "status": {"token": token}}
        (kubeconfigs.folder / f"{number}.json").write_text(json.dumps(answer))
    user = a_plugin(kubeconfigs.folder, "cat $RUN.json")

    async with Client(kubeconfigs.access(user=user)) as client:
        names = [await who_am_i(client), await who_am_i(client)]
        await account.revoke("one", tokens["one"], access)
        names.append(await who_am_i(client))

    assert names == [f"system:serviceaccount:{namespace}:default"] * 3
    assert (kubeconfigs.folder / "runs").read_text() == "run\n" * 2


async def test_a_plugin_may_hand_out_a_client_certificate(api: Api, kubeconfigs: Kubeconfigs) -> None:
    chain, key = (Path(path).read_text() for path in api.client_certificate("jane"))
    status = {"clientCertificateData": chain, "clientKeyData": key}
    (kubeconfigs.folder / "answer").write_text(
        json.dumps({"apiVersion": V1, "kind": "ExecCredential", "status": status})
    )

    assert await name_by(kubeconfigs.access(user=a_plugin(kubeconfigs.folder, "cat answer"))) == "jane"


async def test_a_server_that_is_cut_off_is_unreachable_and_then_reachable(access: Access, proxy: Proxy) -> None:
    async with Client(msgspec.structs.replace(access, server=proxy.server)) as client:
        proxy.refuse()
        with pytest.raises(Unreachable, match="cannot be reached"):
            await client.server_version()
        proxy.accept()

        assert await who_am_i(client) == "kubernetes-admin"
