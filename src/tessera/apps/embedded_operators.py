"""The operators in the embedded engine. Our kinds are installed at each start, as the chart does it for a cluster."""

from tessera.apps.working import Work
from tessera.kube.client import Client
from tessera.kube.events import Recorder
from tessera.operators.installing import install_definitions
from tessera.operators.running import Operator

COMPONENT = "tessera-operator"
MANAGER = "tessera-up"


class EmbeddedOperators:
    """`works` belong in a TaskGroup of the caller; `install` comes before them and before whoever reads our kinds."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._recorder = Recorder(client, component=COMPONENT)
        self._operator = Operator(client, self._recorder)

    async def install(self) -> None:
        await install_definitions(self._client, MANAGER)

    def works(self) -> list[Work]:
        return [self._recorder.run(), *self._operator.works()]
