"""Exec plugins: run when needed, told what they may know, and blamed in one sentence."""

import asyncio
import json
from datetime import timedelta
from pathlib import Path
from textwrap import dedent

import pytest

from tessera.errors import CredentialsFailed, InvalidKubeconfig
from tessera.kube import exec_plugins
from tessera.kube.exec_plugins import API_VERSIONS, ExecCredentials
from tessera.kube.kubeconfig import Cluster, EnvironmentVariable, Exec, Extension, User
from tests.unit.kube.certificates import make_certificate
from tests.unit.kube.clocks import FakeClock

pytestmark = pytest.mark.asyncio
CLUSTER = Cluster(
    server="https://api:6443",
    extensions=(Extension(name="client.authentication.k8s.io/exec", extension={"audience": "x"}),),
)


class Plugin:
    """A shell script that counts its runs in a file and answers with what the test chooses."""

    def __init__(self, folder: Path, clock: FakeClock) -> None:
        self.folder = folder
        self.clock = clock
        self.api_version = API_VERSIONS[0]
        self.says({"token": "token-$RUN"})

    def says(self, status: dict[str, str], before: str = "") -> None:
        answer = json.dumps({"apiVersion": self.api_version, "kind": "ExecCredential", "status": status})
        self.runs(f"{before}\ncat <<END\n{answer}\nEND")

    def runs(self, script: str) -> None:
        count = f'echo run >> "{self.folder}/runs"; RUN=$(wc -l < "{self.folder}/runs")'
        file = self.folder / "plugin"
        file.write_text(f"#!/bin/sh\n{count}\n{dedent(script)}\n")
        file.chmod(0o755)

    @property
    def times(self) -> int:
        runs = self.folder / "runs"
        return len(runs.read_text().splitlines()) if runs.exists() else 0

    def credentials(self, *, told: bool = False, command: str = "", hint: str = "") -> ExecCredentials:
        plugin = Exec(
            api_version=self.api_version,
            command=command or str(self.folder / "plugin"),
            args=("login",),
            env=(EnvironmentVariable(name="GREETING", value="hello"),),
            provide_cluster_info=told,
            install_hint=hint,
        )
        return ExecCredentials(User(), plugin, CLUSTER, b"PEM", clock=self.clock)


@pytest.fixture
def plugin(tmp_path: Path) -> Plugin:
    return Plugin(tmp_path, FakeClock())


async def token_of(credentials: ExecCredentials) -> str:
    headers = dict((await credentials.current()).headers)
    return headers["Authorization"].removeprefix("Bearer ")


@pytest.mark.parametrize("api_version", API_VERSIONS)
async def test_a_token_without_an_end_is_kept_until_it_is_refused(plugin: Plugin, api_version: str) -> None:
    plugin.api_version = api_version
    plugin.says({"token": "token-$RUN"})
    credentials = plugin.credentials()

    tokens = [await token_of(credentials), await token_of(credentials)]
    credentials.forget(await credentials.current())

    assert tokens == ["token-1", "token-1"]
    assert await token_of(credentials) == "token-2"


async def test_a_token_that_many_were_refused_with_is_fetched_anew_once(plugin: Plugin) -> None:
    credentials = plugin.credentials()
    refused = await credentials.current()

    for _ in range(3):
        credentials.forget(refused)
        await credentials.current()

    assert plugin.times == 2


async def test_a_token_is_fetched_again_when_it_has_run_out(plugin: Plugin) -> None:
    expires = plugin.clock.wall() + timedelta(seconds=60)
    plugin.says({"token": "token-$RUN", "expirationTimestamp": expires.isoformat().replace("+00:00", "Z")})
    credentials = plugin.credentials()
    first = await token_of(credentials)
    plugin.clock.advance(59)
    still = await token_of(credentials)
    plugin.clock.advance(1)

    assert (first, still, await token_of(credentials)) == ("token-1", "token-1", "token-2")


async def test_many_who_ask_at_once_run_it_once(plugin: Plugin) -> None:
    credentials = plugin.credentials()

    tokens = await asyncio.gather(*(token_of(credentials) for _ in range(5)))

    assert (set(tokens), plugin.times) == ({"token-1"}, 1)


async def test_the_plugin_gets_its_arguments_its_environment_and_no_terminal(plugin: Plugin) -> None:
    plugin.says({"token": "$1-$GREETING-$TTY"}, before="if read -r line; then TTY=stdin; else TTY=none; fi")

    assert await token_of(plugin.credentials()) == "login-hello-none"


@pytest.mark.parametrize("told", [True, False])
async def test_the_plugin_is_told_about_the_cluster_only_where_it_asks(plugin: Plugin, told: bool) -> None:
    plugin.says({"token": "t"}, before=f'printf %s "$KUBERNETES_EXEC_INFO" > {plugin.folder}/info')
    await plugin.credentials(told=told).current()

    info = json.loads((plugin.folder / "info").read_text())

    cluster = {"server": "https://api:6443", "certificate-authority-data": "UEVN", "config": {"audience": "x"}}
    assert info["apiVersion"] == API_VERSIONS[0]
    assert info["spec"] == {"interactive": False, **({"cluster": cluster} if told else {})}


async def test_a_plugin_may_answer_a_client_certificate(plugin: Plugin) -> None:
    made = make_certificate()
    plugin.says({"clientCertificateData": made.chain.decode(), "clientKeyData": made.key.decode()})

    assert (await plugin.credentials().current()).certificate == made


@pytest.mark.parametrize(
    ("script", "complaint"),
    [
        ("echo no way >&2; exit 3", "ended with 3, expected 0: no way"),
        ("echo hello", "answered what is no ExecCredential"),
        ('echo \'{"apiVersion":"v2","kind":"ExecCredential"}\'', "answered ExecCredential of v2, expected"),
        (f'echo \'{{"apiVersion":"{API_VERSIONS[0]}","kind":"ExecCredential"}}\'', "answered no status"),
    ],
)
async def test_a_plugin_that_fails_is_blamed(plugin: Plugin, script: str, complaint: str) -> None:
    plugin.runs(script)

    with pytest.raises(CredentialsFailed, match=complaint):
        await plugin.credentials().current()


async def test_half_of_a_certificate_is_refused(plugin: Plugin) -> None:
    plugin.says({"clientCertificateData": "PEM"})

    with pytest.raises(CredentialsFailed, match="half of a certificate"):
        await plugin.credentials().current()


async def test_a_plugin_that_is_not_there_comes_with_its_hint(plugin: Plugin) -> None:
    with pytest.raises(CredentialsFailed, match=r"/none: cannot be run .*; install it"):
        await plugin.credentials(command="/none", hint="install it").current()


async def test_a_plugin_that_hangs_is_ended(plugin: Plugin, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(exec_plugins, "PLUGIN_TIMEOUT_S", 0.05)
    plugin.runs("exec sleep 1000")

    with pytest.raises(CredentialsFailed, match="did not end within"):
        await plugin.credentials().current()


async def test_a_plugin_that_wants_a_terminal_is_refused_at_the_start() -> None:
    wanting = Exec(api_version=API_VERSIONS[0], command="login", interactive_mode="Always")

    with pytest.raises(InvalidKubeconfig, match="nobody is here to type"):
        ExecCredentials(User(), wanting, CLUSTER, None)


async def test_a_version_that_we_do_not_speak_is_refused_at_the_start(plugin: Plugin) -> None:
    plugin.api_version = "client.authentication.k8s.io/v1alpha1"

    with pytest.raises(InvalidKubeconfig, match="v1alpha1"):
        plugin.credentials()
