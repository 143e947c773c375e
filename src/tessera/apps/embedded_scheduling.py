"""Scheduling without kube-scheduler: our own loop asks, and the API server's webhook is answered beside it."""

from collections.abc import Iterable
from functools import partial

from starlette.types import ASGIApp

from tessera.admission import DEFAULT_SETTINGS, Webhook
from tessera.apps.deciding import Deciding
from tessera.apps.embedded_pages import serve_pages
from tessera.apps.quotas import LedgerQuotas
from tessera.apps.recovery import PROMPT
from tessera.apps.reviews import Reviews
from tessera.apps.scheduler_pages import SchedulerPages
from tessera.apps.serving import make_app
from tessera.apps.working import Work
from tessera.engine.policies import DEFAULT
from tessera.kube.client import Client
from tessera.kube.pods import Pod
from tessera.kube.reconciler import Again, Reconciler
from tessera.model.annotations.keys import CLAIM, GANG
from tessera.scheduler.configuration import PROFILES
from tessera.scheduler.hami_metrics import HamiPage
from tessera.scheduler.loop import Loop
from tessera.scheduler.metrics import Figures, Standing
from tessera.scheduler.other_resources import OtherResources
from tessera.scheduler.outcomes import PodOutcomes
from tessera.scheduler.rallies import Rallies

SCHEDULERS = (*PROFILES, "default-scheduler")
"""A cluster's own scheduler is called so, and here there is no other."""
NOT_YET_S = 0.1
RALLY_S = 2.0
"""All members of a gang are bound in one round of the loop, and the next round waits for it."""
BY_NODE = "node"
ALL = "all"


class EmbeddedScheduling(Deciding):
    """`profiles` are names under which pods are placed besides the usual ones."""

    def __init__(self, client: Client, profiles: Iterable[str] = ()) -> None:
        super().__init__(client, DEFAULT, pods_by={BY_NODE: _node_of})
        others = OtherResources(is_ours=self._is_ours, pods_on=partial(self.pods.find, BY_NODE))
        outcomes = PodOutcomes(client, self.recorder)
        self._loop = Loop(
            self.phases, self.binder, others, outcomes, schedulers={*SCHEDULERS, *profiles}, nodes=lambda: self.nodes
        )
        self._placing: Reconciler[str] = Reconciler("pods to place", self._place, workers=1, backoff=PROMPT)
        self._loop.wanted = partial(self._placing.mark, ALL)
        self.world.freed = self._look_again
        self.phases.gangs.planned = partial(self._placing.mark, ALL)
        self.phases.gangs.rallies = Rallies(patience_s=RALLY_S)
        self.pods.subscribe(self._loop.pod_changed)
        figures = Figures(Standing(self.world, self._loop, self.recovery.drift, self.recorder, self.decides))
        webhook = Webhook(self.world.catalogue, DEFAULT_SETTINGS, LedgerQuotas(self.world))
        self._reviews = Reviews(webhook, figures)
        hami = HamiPage(self.world, self.pods, self.namespaces_with_quotas, old_names=True)
        self._pages = SchedulerPages(self.world, figures, hami)
        self._client = client

    def app(self) -> ASGIApp:
        """The webhook, as the API server asks it."""
        return self._reviews.app(self.decides)

    def knows(self, nodes: Iterable[str]) -> bool:
        """Whether pods can be placed on all of them."""
        return all(node in self.world.ledger.fleet.row_of for node in nodes)

    def works(self) -> list[Work]:
        pages = make_app(is_ready=self.decides, pages=self._pages.all())
        return [*super().works(), self._placing.run(), serve_pages(self._client, pages)]

    async def _place(self, key: str) -> Again | None:
        return await self._loop.place_waiting(key) if self.decides() else Again(NOT_YET_S)

    def _look_again(self) -> None:
        self._placing.mark(ALL)
        self.recovery.look_again()

    def _is_ours(self, resource: str) -> bool:
        """The webhook adds the last two, to pods with a claim and to those of gangs."""
        return self.world.catalogue.by_resource(resource) is not None or resource in (CLAIM, GANG)


def _node_of(pod: Pod) -> tuple[str, ...]:
    return (pod.spec.node_name,) if pod.spec.node_name else ()
