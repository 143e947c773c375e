"""All controllers, put together once."""

from tessera.embedded.controllers.budgeting import Budgets
from tessera.embedded.controllers.clearing import Clearing
from tessera.embedded.controllers.collecting import Collector
from tessera.embedded.controllers.deploying import Deployments
from tessera.embedded.controllers.emptying import Emptying
from tessera.embedded.controllers.endpoint_following import EndpointSlices
from tessera.embedded.controllers.furnishing import Furnishing
from tessera.embedded.controllers.job_running import Jobs
from tessera.embedded.controllers.node_watching import Nodes
from tessera.embedded.controllers.numbering import StatefulSets
from tessera.embedded.controllers.replicating import ReplicaSets
from tessera.embedded.controllers.stationing import DaemonSets
from tessera.embedded.controllers.undefining import Undefining
from tessera.embedded.controllers.watching import Watching, Work
from tessera.kube.client import Client
from tessera.kube.events import Recorder

CONNECTIONS = 512
"""What a client for controllers may open at once: each kind that is followed, custom ones too, has a watch."""


class Controllers:
    """`works` belong in a TaskGroup of the caller. `authority` is the certificate that pods are to trust."""

    def __init__(self, client: Client, authority: bytes) -> None:
        self._watching = Watching(client)
        self._recorder = recorder = Recorder(client, component="controller-manager")
        self._workers = (
            Emptying(client, self._watching),
            Undefining(client, self._watching),
            ReplicaSets(client, self._watching, recorder),
            Deployments(client, self._watching),
            StatefulSets(client, self._watching, recorder),
            DaemonSets(client, self._watching, recorder),
            Jobs(client, self._watching, recorder),
            Clearing(client, self._watching, recorder),
            EndpointSlices(client, self._watching),
            Budgets(client, self._watching),
        )
        self._furnishing = Furnishing(client, self._watching, authority.decode())
        self._nodes = Nodes(client, self._watching)
        self._collector = Collector(client, self._watching)

    def works(self) -> list[Work]:
        several = (self._furnishing, self._nodes, self._collector)
        return [
            self._watching.run(),
            self._recorder.run(),
            *(worker.run() for worker in self._workers),
            *(work for worker in several for work in worker.works()),
        ]
