"""What decides about pods, put together: whoever asks it, kube-scheduler or a loop of our own.

The ledger follows nodes, pods and quotas; what is decided is written once and recovered when an answer is lost.
"""

import socket
from collections.abc import Mapping
from typing import Any

from tessera.apps.recovery import Recovery
from tessera.apps.working import Work
from tessera.kube.caching import IndexBy
from tessera.kube.client import Client
from tessera.kube.events import Recorder
from tessera.kube.following import Leading
from tessera.kube.informer import Informer
from tessera.kube.kinds import RESOURCE_QUOTAS
from tessera.kube.pods import CACHED_PODS, Pod
from tessera.model.requests import PolicyChoice
from tessera.scheduler.binding import Binder
from tessera.scheduler.early_nodes import EarlyNodes
from tessera.scheduler.leading import Leadership
from tessera.scheduler.nodes import CACHED_NODES
from tessera.scheduler.phases import Phases
from tessera.scheduler.telling import Teller
from tessera.scheduler.world import World
from tessera.vendors.loading import load_catalogue

COMPONENT = "hami-scheduler"
MOST_SILENT_S = 180.0


class Deciding:
    """`works` keep it up to date. Without `leading` nobody else decides. `pods_by` are indexes over the pods."""

    def __init__(
        self,
        client: Client,
        policy: PolicyChoice,
        *,
        leading: Leading | None = None,
        tells_binds: bool = False,
        pods_by: Mapping[str, IndexBy[Pod]] | None = None,
    ) -> None:
        self.world = World(load_catalogue(), default=policy)
        self.phases = Phases(self.world)
        self.pods, self.nodes = Informer(client, CACHED_PODS, indexes=pods_by), Informer(client, CACHED_NODES)
        self.quotas = Informer(client, RESOURCE_QUOTAS)
        self._watched: tuple[Informer[Any], ...] = (self.pods, self.nodes, self.quotas)
        self.pods.subscribe(self.world.pod_changed)
        self.nodes.subscribe(self.world.node_changed)
        self.quotas.subscribe(self.world.quota_changed)
        self._leading = leading
        self._leadership = Leadership(
            client, self.pods, election=leading, is_undecided=self.world.is_undecided, caches=[self.nodes]
        )
        self.recovery = Recovery(
            client,
            self.world,
            self.phases.offers,
            self.pods,
            self.nodes,
            may_write=self._leadership.may_write,
            decides=self.decides,
        )
        self.recorder = Recorder(client, component=COMPONENT, host=socket.gethostname())
        self.teller = Teller(self.recorder, tells_binds=tells_binds)
        self.recovery.late.refused_late = self.teller.not_bound
        early = EarlyNodes(self.world, self.nodes.get, self.pods.get)
        self.binder = Binder(self.recovery.commits, self.world, self.pods.get, hold_back=early.check)

    def has_read_all(self) -> bool:
        return all(informer.is_synced for informer in self._watched)

    def decides(self) -> bool:
        """Whether anything may be decided: all is known and fresh, and nobody else decides."""
        return all(map(is_current, self._watched)) and self._leadership.is_established

    def works(self) -> list[Work]:
        works = [*(informer.run() for informer in self._watched), *self.recovery.works()]
        works += [self.recorder.run(), self._leadership.run()]
        return [*works, *([self._leading.run()] if self._leading else [])]

    def namespaces_with_quotas(self) -> list[str]:
        return [quota["metadata"]["namespace"] for quota in self.quotas]


def is_current(informer: Informer[Any]) -> bool:
    """Whether it knows everything and has heard of the API server lately: bookmarks come once a minute."""
    return informer.is_synced and (informer.silent_s or 0.0) < MOST_SILENT_S
