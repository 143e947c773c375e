"""What decides about pods, put together: whoever asks it, kube-scheduler or a loop of our own.

The ledger follows nodes, pods and quotas; what is decided is written once and recovered when an answer is lost.
"""

import socket
from collections.abc import Mapping
from typing import Any

from tessera.apps.claiming import PODS_BY, Claiming
from tessera.apps.recovery import Recovery
from tessera.apps.working import Work
from tessera.kube.caching import IndexBy
from tessera.kube.client import Client
from tessera.kube.events import Recorder
from tessera.kube.following import Leading
from tessera.kube.informer import Informer
from tessera.kube.kinds import RESOURCE_QUOTAS
from tessera.kube.objects import ObjectKey
from tessera.kube.pods import CACHED_PODS, Pod
from tessera.kube.timing import SYSTEM_CLOCK
from tessera.model.requests import PodRef, PodRequest, PolicyChoice
from tessera.scheduler.binding import Binder
from tessera.scheduler.claims import annotations_of, names_claim
from tessera.scheduler.early_nodes import EarlyNodes
from tessera.scheduler.leading import Leadership
from tessera.scheduler.nodes import CACHED_NODES
from tessera.scheduler.phases import Phases
from tessera.scheduler.telling import Teller
from tessera.scheduler.world import World
from tessera.vendors.loading import load_catalogue

COMPONENT = "hami-scheduler"
MOST_SILENT_S = 180.0
EXPIRE_EVERY_S = 1.0
NO_INDEXES: Mapping[str, IndexBy[Pod]] = {}


class Deciding:
    """`works` keep it up to date. Without `leading` nobody else decides. `pods_by` are indexes over the pods."""

    def __init__(
        self,
        client: Client,
        policy: PolicyChoice,
        *,
        leading: Leading | None = None,
        tells_binds: bool = False,
        pods_by: Mapping[str, IndexBy[Pod]] = NO_INDEXES,
        lease_namespace: str = "default",
    ) -> None:
        self.world = World(load_catalogue(), default=policy)
        self.phases = Phases(self.world)
        self.pods = Informer(client, CACHED_PODS, indexes={**PODS_BY, **pods_by})
        self.nodes, self.quotas = Informer(client, CACHED_NODES), Informer(client, RESOURCE_QUOTAS)
        self.claiming = Claiming(
            client,
            self.world,
            self.phases.gangs,
            self.pods,
            lease_namespace,
            lingers=self._may_linger,
            may_write=lambda: self.has_read_all() and self._leadership.may_write(),
        )
        self._watched: tuple[Informer[Any], ...] = (self.pods, self.nodes, self.quotas, *self.claiming.informers)
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
            leases=self.claiming.leases,
            may_write=self._leadership.may_write,
            decides=self.decides,
        )
        self.recorder = Recorder(client, component=COMPONENT, host=socket.gethostname())
        self.teller = Teller(self.recorder, tells_binds=tells_binds)
        self.recovery.late.refused_late = self.teller.not_bound
        early = EarlyNodes(self.world, self.nodes.get, self.pods.get)
        self.binder = Binder(self.recovery.commits, self.world, self.pods.get, hold_back=early.check)
        self.binder.refused, self.binder.rally = self.phases.gangs.release_plan, self.phases.gangs.rally

    def has_read_all(self) -> bool:
        return all(informer.is_synced for informer in (*self._watched, self.recovery.agents))

    def decides(self) -> bool:
        """Whether anything may be decided: all is known and fresh, and nobody else decides."""
        is_known = all(map(is_current, self._watched)) and self.claiming.is_settled
        return is_known and self._leadership.is_established

    def could_be_placed(self, ref: PodRef, request: PodRequest | None) -> bool:
        """Whether some node would take the pod now. Without a request it is read anew."""
        if request is not None:
            return self.phases.could_be_placed(ref.namespace, request)
        pod = self.pods.get(ObjectKey(ref.namespace, ref.name))
        return pod is not None and self.phases.could_go(pod, SYSTEM_CLOCK.monotonic_s())

    def lasting_request(self, pod: Pod) -> PodRequest | None:
        """What the pod asks for; None, if that depends on a claim or on others and may change."""
        if names_claim(annotations_of(pod)) or self.phases.gangs.members.gang_of(pod):
            return None
        return self.world.request_of(pod)

    def works(self) -> list[Work]:
        works = [informer.run() for informer in (self.pods, self.nodes, self.quotas)]
        works += [*self.claiming.works(), *self.recovery.works()]
        works += [self.recorder.run(), self._leadership.run(), self._expire_offers()]
        return [*works, *([self._leading.run()] if self._leading else [])]

    def _may_linger(self, node: str, uid: str) -> bool:
        return self.recovery.draining.may_linger(node, uid)

    async def _expire_offers(self) -> None:
        """What was kept for a gang and not taken in time is free, also if nobody asks."""
        while True:
            await SYSTEM_CLOCK.sleep(EXPIRE_EVERY_S)
            self.phases.gangs.expire(SYSTEM_CLOCK.monotonic_s())

    def namespaces_with_quotas(self) -> list[str]:
        return [quota["metadata"]["namespace"] for quota in self.quotas]


def is_current(informer: Informer[Any]) -> bool:
    """Whether it knows everything and has heard of the API server lately: bookmarks come once a minute."""
    return informer.is_synced and (informer.silent_s or 0.0) < MOST_SILENT_S
