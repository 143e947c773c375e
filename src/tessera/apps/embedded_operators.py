"""The operators in the embedded engine. Our kinds are installed at each start, as the chart does it for a cluster.

Pods share the host's network here, so the server of a Compute listens on the address of its own pod. There is no DNS,
and nothing pulls images: one that is not known stays so until somebody adds it.
"""

from tessera.apps.working import Work
from tessera.kube.client import Client
from tessera.kube.events import Recorder
from tessera.model.catalogue import Catalogue
from tessera.operators.compute_children import ComputeSettings
from tessera.operators.compute_running import ComputeOperator
from tessera.operators.installing import install_definitions
from tessera.operators.running import Operator

COMPONENT = "tessera-operator"
MANAGER = "tessera-up"
COMPUTES_HERE = ComputeSettings(host_field="status.podIP", cluster_domain="", image_patience_s=3.0)


class EmbeddedOperators:
    """`works` belong in a TaskGroup of the caller; `install` comes before them and before whoever reads our kinds."""

    def __init__(self, client: Client, catalogue: Catalogue) -> None:
        self._client = client
        self._recorder = Recorder(client, component=COMPONENT)
        self._operator = Operator(client, self._recorder)
        self._computes = ComputeOperator(client, self._recorder, catalogue, settings=COMPUTES_HERE)

    async def install(self) -> None:
        await install_definitions(self._client, MANAGER)

    def works(self) -> list[Work]:
        return [self._recorder.run(), *self._operator.works(), *self._computes.works()]
