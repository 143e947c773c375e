"""Which versions meet: of this program, of Kubernetes, and of what is installed in the cluster."""

from tessera import __version__
from tessera.errors import KubeError
from tessera.kube.client import Client
from tessera.kube.kinds import Selection
from tessera.views.documents import VIEWED_PODS
from tessera.views.installed import NAME_LABEL, NAMESPACE, SCHEDULER
from tessera.views.records import View

VERSION_LABEL = "app.kubernetes.io/version"


class Versions(View, frozen=True, kw_only=True):
    """`kubernetes` is None where no cluster answers; `schedulers` where it cannot be seen what is installed."""

    client: str = __version__
    kubernetes: str | None = None
    schedulers: tuple[str, ...] | None = None


async def read_versions(client: Client) -> Versions:
    server = await client.server_version()
    return Versions(kubernetes=str(server.get("gitVersion", "")), schedulers=await _read_schedulers(client))


async def _read_schedulers(client: Client) -> tuple[str, ...] | None:
    """More than one during an upgrade."""
    selection = Selection(namespace=NAMESPACE, labels=f"{NAME_LABEL}={SCHEDULER}")
    try:
        pods = await client.list(VIEWED_PODS, selection)
    except KubeError:
        return None
    return tuple(sorted({(pod.metadata.labels or {}).get(VERSION_LABEL, "unknown") for pod in pods.items}))
