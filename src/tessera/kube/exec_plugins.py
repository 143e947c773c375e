"""Credentials from a program that the kubeconfig names, as cloud providers and single sign-on hand them out.

The program is run once for all who ask at the same time, and again only when what it gave has run out or was refused.
It gets no terminal: a controller has nobody to type.
"""

import asyncio
import os
from collections.abc import Mapping
from datetime import datetime
from typing import Any

import msgspec

from tessera.errors import CredentialsFailed, InvalidKubeconfig
from tessera.kube.credentials import Credential, bearer, impersonation
from tessera.kube.kubeconfig import EXEC_EXTENSION, Cluster, Exec, User
from tessera.kube.timing import SYSTEM_CLOCK, Clock
from tessera.kube.tls import Certificate

API_VERSIONS = ("client.authentication.k8s.io/v1", "client.authentication.k8s.io/v1beta1")
PLUGIN_TIMEOUT_S = 60.0
_SHOWN_OF_STDERR = 300


class _Status(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    token: str | None = None
    client_certificate_data: str | None = None
    client_key_data: str | None = None
    expiration_timestamp: datetime | None = None


class _ExecCredential(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    api_version: str
    kind: str
    status: _Status | None = None


class ExecCredentials:
    """`cluster` is told to the plugin where it asks for it, `authorities` as the PEM that the cluster is trusted by."""

    def __init__(
        self, user: User, plugin: Exec, cluster: Cluster, authorities: bytes | None, *, clock: Clock = SYSTEM_CLOCK
    ) -> None:
        if plugin.api_version not in API_VERSIONS:
            raise InvalidKubeconfig(
                f'user.exec.apiVersion is "{plugin.api_version}", expected {" or ".join(API_VERSIONS)}'
            )
        if plugin.interactive_mode == "Always":
            raise InvalidKubeconfig("user.exec.interactiveMode is Always, expected Never; nobody is here to type")
        self._plugin = plugin
        self._impersonation = tuple(impersonation(user))
        self._info = _exec_info(plugin, cluster, authorities)
        self._clock = clock
        self._running = asyncio.Lock()
        self._known: Credential | None = None
        self._expires_at: datetime | None = None

    async def current(self) -> Credential:
        async with self._running:
            if self._known is None or self._has_run_out():
                self._known = await self._fetch()
            return self._known

    def forget(self, refused: Credential) -> None:
        """Of many who were refused with one token, the first has it fetched anew; the others find the new one."""
        if self._known is refused:
            self._known = None

    def _has_run_out(self) -> bool:
        return self._expires_at is not None and self._clock.wall() >= self._expires_at

    async def _fetch(self) -> Credential:
        answer = _read_answer(await self._run(), self._plugin)
        self._expires_at = answer.expiration_timestamp
        headers = (*([bearer(answer.token)] if answer.token else ()), *self._impersonation)
        return Credential(headers, _read_pair(answer, self._plugin))

    async def _run(self) -> bytes:
        plugin = self._plugin
        try:
            process = await asyncio.create_subprocess_exec(
                plugin.command,
                *(plugin.args or ()),
                env=self._environment(),
                stdin=asyncio.subprocess.DEVNULL,
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.PIPE,
            )
        except OSError as error:
            hint = f"; {plugin.install_hint}" if plugin.install_hint else ""
            raise CredentialsFailed(
                f"{plugin.command}: cannot be run ({error}), expected an exec plugin{hint}"
            ) from None
        output, complaint = await _communicate(process, plugin.command)
        if process.returncode:
            shown = complaint.decode(errors="replace").strip()[-_SHOWN_OF_STDERR:]
            raise CredentialsFailed(f"{plugin.command}: ended with {process.returncode}, expected 0: {shown}")
        return output

    def _environment(self) -> Mapping[str, str]:
        own = {variable.name: variable.value for variable in self._plugin.env or ()}
        return {**os.environ, **own, "KUBERNETES_EXEC_INFO": self._info}


async def _communicate(process: asyncio.subprocess.Process, command: str) -> tuple[bytes, bytes]:
    try:
        async with asyncio.timeout(PLUGIN_TIMEOUT_S):
            return await process.communicate()
    except TimeoutError:
        raise CredentialsFailed(
            f"{command}: did not end within {PLUGIN_TIMEOUT_S:.0f} s, expected credentials"
        ) from None
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()


def _exec_info(plugin: Exec, cluster: Cluster, authorities: bytes | None) -> str:
    spec: dict[str, Any] = {"interactive": False}
    if plugin.provide_cluster_info:
        spec["cluster"] = _cluster_info(cluster, authorities)
    info = {"apiVersion": plugin.api_version, "kind": "ExecCredential", "spec": spec}
    return msgspec.json.encode(info).decode()


def _cluster_info(cluster: Cluster, authorities: bytes | None) -> dict[str, Any]:
    config = next((it.extension for it in cluster.extensions or () if it.name == EXEC_EXTENSION), None)
    told = {
        "server": cluster.server,
        "tls-server-name": cluster.tls_server_name,
        "insecure-skip-tls-verify": cluster.insecure_skip_tls_verify,
        "certificate-authority-data": authorities,
        "proxy-url": cluster.proxy_url,
        "config": config,
    }
    return {name: value for name, value in told.items() if value}


def _read_answer(output: bytes, plugin: Exec) -> _Status:
    try:
        answer = msgspec.json.decode(output, type=_ExecCredential)
    except msgspec.MsgspecError as error:
        raise CredentialsFailed(f"{plugin.command}: answered what is no ExecCredential: {error}") from None
    if answer.kind != "ExecCredential" or answer.api_version != plugin.api_version:
        found = f"{answer.kind} of {answer.api_version}"
        raise CredentialsFailed(f"{plugin.command}: answered {found}, expected ExecCredential of {plugin.api_version}")
    if answer.status is None or not (answer.status.token or answer.status.client_certificate_data):
        raise CredentialsFailed(f"{plugin.command}: answered no status, expected a token or a client certificate")
    return answer.status


def _read_pair(answer: _Status, plugin: Exec) -> Certificate | None:
    chain, key = answer.client_certificate_data, answer.client_key_data
    if bool(chain) != bool(key):
        raise CredentialsFailed(f"{plugin.command}: answered half of a certificate, expected it with its key")
    return Certificate(chain.encode(), key.encode()) if chain and key else None
