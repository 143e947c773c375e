"""Where the API server is, whom to believe to be it, and who we are to it.

Found as kubectl finds it: the file that is named, else those of $KUBECONFIG, else ~/.kube/config, else the service
account of the pod we run in.
"""

import os
from collections.abc import Mapping
from pathlib import Path
from urllib.parse import urlsplit
from urllib.request import getproxies, proxy_bypass

import msgspec

from tessera.errors import InvalidKubeconfig
from tessera.kube.credentials import (
    Credential,
    Credentials,
    ReadCredentials,
    bearer,
    decode_data,
    read_file,
    read_token,
    read_user,
)
from tessera.kube.exec_plugins import ExecCredentials
from tessera.kube.kubeconfig import Cluster, Kubeconfig, User, load_kubeconfig
from tessera.kube.tls import Trust

SERVICE_ACCOUNT = Path("/var/run/secrets/kubernetes.io/serviceaccount")


class Access(msgspec.Struct, frozen=True, kw_only=True):
    """`namespace` is the one that the context or the service account is in."""

    server: str
    credentials: Credentials
    trust: Trust = Trust()
    namespace: str = "default"
    proxy: str | None = None


def find_access(
    path: Path | None = None, *, context: str | None = None, environment: Mapping[str, str] = os.environ
) -> Access:
    paths = [path] if path else kubeconfig_paths(environment)
    if paths:
        return kubeconfig_access(load_kubeconfig(paths), context=context)
    if "KUBERNETES_SERVICE_HOST" in environment:
        return in_cluster_access(environment=environment)
    raise InvalidKubeconfig(
        "no cluster is named: $KUBECONFIG and ~/.kube/config are missing and this is not a pod; name a kubeconfig"
    )


def kubeconfig_paths(environment: Mapping[str, str]) -> list[Path]:
    """The files that are there. Of those that $KUBECONFIG lists, kubectl lets some be missing."""
    listed = [Path(path) for path in environment.get("KUBECONFIG", "").split(os.pathsep) if path]
    usual = Path(environment.get("HOME", "~")).expanduser() / ".kube" / "config"
    return [path for path in (listed or [usual]) if path.exists()]


def kubeconfig_access(config: Kubeconfig, *, context: str | None = None) -> Access:
    chosen, cluster, user = config.choose(context)
    server = cluster.server.rstrip("/")
    scheme = urlsplit(server).scheme
    if scheme not in ("https", "http"):
        raise InvalidKubeconfig(f'{config.where}: server is "{server}", expected a URL that starts with https://')
    try:
        trust = _read_trust(cluster)
        return Access(
            server=server,
            credentials=_choose_credentials(user, cluster, trust),
            trust=trust,
            namespace=chosen.namespace or "default",
            proxy=_choose_proxy(cluster, server),
        )
    except InvalidKubeconfig as error:
        raise InvalidKubeconfig(f"{config.where}: {error}") from None


def in_cluster_access(*, folder: Path = SERVICE_ACCOUNT, environment: Mapping[str, str] = os.environ) -> Access:
    """As a pod's service account. Its token is rotated in place, so it is read again and again."""
    host, port = environment.get("KUBERNETES_SERVICE_HOST"), environment.get("KUBERNETES_SERVICE_PORT")
    if not host or not port:
        raise InvalidKubeconfig("KUBERNETES_SERVICE_HOST and _PORT are not set, expected both; is this a pod?")
    address = f"[{host}]" if ":" in host else host
    namespace = folder / "namespace"
    return Access(
        server=f"https://{address}:{port}",
        credentials=ReadCredentials(lambda: Credential((bearer(read_token(folder / "token")),))),
        trust=Trust(authorities=read_file(folder / "ca.crt")),
        namespace=read_file(namespace).decode().strip() if namespace.exists() else "default",
    )


def _read_trust(cluster: Cluster) -> Trust:
    if cluster.certificate_authority_data:
        authorities = decode_data(cluster.certificate_authority_data, "certificate-authority")
    elif cluster.certificate_authority:
        authorities = read_file(Path(cluster.certificate_authority))
    else:
        authorities = None
    if authorities and cluster.insecure_skip_tls_verify:
        raise InvalidKubeconfig("certificate-authority and insecure-skip-tls-verify exclude each other; remove one")
    return Trust(
        authorities=authorities,
        insecure=cluster.insecure_skip_tls_verify,
        server_name=cluster.tls_server_name,
    )


def _choose_credentials(user: User, cluster: Cluster, trust: Trust) -> Credentials:
    if user.auth_provider:
        raise InvalidKubeconfig("user.auth-provider: Kubernetes has none since 1.26, expected exec; use a plugin")
    if user.exec:
        return ExecCredentials(user, user.exec, cluster, trust.authorities)
    return ReadCredentials(lambda: read_user(user))


def _choose_proxy(cluster: Cluster, server: str) -> str | None:
    if not cluster.proxy_url:
        return _environment_proxy(server)
    if urlsplit(cluster.proxy_url).scheme not in ("http", "https"):
        raise InvalidKubeconfig(f'proxy-url is "{cluster.proxy_url}", expected a URL that starts with http')
    return cluster.proxy_url


def _environment_proxy(server: str) -> str | None:
    url = urlsplit(server)
    return None if proxy_bypass(url.hostname or "") else getproxies().get(url.scheme)
