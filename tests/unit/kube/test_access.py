"""How a cluster is found, and what a kubeconfig or a pod's service account says about it."""

import base64
from pathlib import Path

import pytest

from tessera.errors import InvalidKubeconfig
from tessera.kube.access import find_access, in_cluster_access, kubeconfig_access, kubeconfig_paths
from tessera.kube.exec_plugins import ExecCredentials
from tessera.kube.kubeconfig import Cluster, Context, Exec, Kubeconfig, User

CA = base64.b64encode(b"PEM").decode()


def a_config(cluster: Cluster | None = None, user: User | None = None) -> Kubeconfig:
    return Kubeconfig(
        where="/k",
        current_context="c",
        contexts={"c": Context(cluster="c", user="u", namespace="team")},
        clusters={"c": cluster or Cluster(server="https://api:6443/")},
        users={"u": user or User()},
    )


def write(path: Path, server: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(
        f"current-context: c\ncontexts: [{{name: c, context: {{cluster: c}}}}]\n"
        f"clusters: [{{name: c, cluster: {{server: '{server}'}}}}]\n"
    )
    return path


def test_a_named_file_comes_before_the_environment_and_the_home(tmp_path: Path) -> None:
    named = write(tmp_path / "named", "https://named")
    listed = write(tmp_path / "listed", "https://listed")
    write(tmp_path / ".kube" / "config", "https://home")
    home = {"HOME": str(tmp_path)}
    environment = {**home, "KUBECONFIG": f"{tmp_path}/missing:{listed}"}

    assert find_access(named, environment=environment).server == "https://named"
    assert find_access(environment=environment).server == "https://listed"
    assert find_access(environment=home).server == "https://home"


def test_all_files_of_the_environment_are_merged_in_order(tmp_path: Path) -> None:
    one, two = write(tmp_path / "one", "https://one"), write(tmp_path / "two", "https://two")

    assert kubeconfig_paths({"KUBECONFIG": f"{one}:{two}:{tmp_path}/missing"}) == [one, two]


def test_nothing_to_find_is_one_sentence(tmp_path: Path) -> None:
    with pytest.raises(InvalidKubeconfig, match="no cluster is named"):
        find_access(environment={"HOME": str(tmp_path)})


def test_a_context_gives_server_namespace_and_trust() -> None:
    cluster = Cluster(server="https://api:6443/", certificate_authority_data=CA, tls_server_name="kubernetes")

    access = kubeconfig_access(a_config(cluster))

    assert (access.server, access.namespace) == ("https://api:6443", "team")
    assert (access.trust.authorities, access.trust.server_name, access.trust.insecure) == (b"PEM", "kubernetes", False)


def test_a_proxy_of_the_cluster_wins_over_that_of_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HTTPS_PROXY", "http://environment:3128")
    monkeypatch.setenv("NO_PROXY", "inside")
    proxied = Cluster(server="https://api", proxy_url="http://own:3128")

    assert kubeconfig_access(a_config(proxied)).proxy == "http://own:3128"
    assert kubeconfig_access(a_config(Cluster(server="https://api"))).proxy == "http://environment:3128"
    assert kubeconfig_access(a_config(Cluster(server="https://inside"))).proxy is None


def test_a_plugin_is_used_where_the_user_has_one() -> None:
    user = User(exec=Exec(api_version="client.authentication.k8s.io/v1", command="login"))

    assert isinstance(kubeconfig_access(a_config(user=user)).credentials, ExecCredentials)


@pytest.mark.parametrize(
    ("cluster", "user", "complaint"),
    [
        (Cluster(server="api:6443"), User(), '/k: server is "api:6443", expected a URL'),
        (Cluster(server="https://a", certificate_authority_data="%"), User(), "certificate-authority-data: is not"),
        (
            Cluster(server="https://a", certificate_authority_data=CA, insecure_skip_tls_verify=True),
            User(),
            "exclude each other",
        ),
        (Cluster(server="https://a", proxy_url="socks5://p"), User(), 'proxy-url is "socks5://p"'),
        (Cluster(server="https://a"), User(auth_provider={"name": "gcp"}), "user.auth-provider"),
    ],
)
def test_what_cannot_work_is_refused_at_the_start(cluster: Cluster, user: User, complaint: str) -> None:
    with pytest.raises(InvalidKubeconfig) as refusal:
        kubeconfig_access(a_config(cluster, user))

    assert complaint in str(refusal.value)


@pytest.fixture
def service_account(tmp_path: Path) -> Path:
    for name, text in {"token": "t", "ca.crt": "PEM", "namespace": "team\n"}.items():
        (tmp_path / name).write_text(text)
    return tmp_path


@pytest.mark.asyncio
async def test_a_pod_finds_the_api_server_by_its_service_account(service_account: Path) -> None:
    environment = {"KUBERNETES_SERVICE_HOST": "fd00::1", "KUBERNETES_SERVICE_PORT": "443"}

    access = in_cluster_access(folder=service_account, environment=environment)

    assert (access.server, access.namespace, access.trust.authorities) == ("https://[fd00::1]:443", "team", b"PEM")
    assert (await access.credentials.current()).headers == (("Authorization", "Bearer t"),)


def test_what_is_no_pod_is_told_so(service_account: Path) -> None:
    with pytest.raises(InvalidKubeconfig, match="is this a pod"):
        in_cluster_access(folder=service_account, environment={})
