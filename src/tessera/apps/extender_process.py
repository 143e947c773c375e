"""The scheduler's process: it reads the cluster's state, then answers kube-scheduler, Volcano and the API server."""

import socket
from functools import partial

from tessera.apps.deciding import Deciding
from tessera.apps.extender_options import Options
from tessera.apps.listeners import Listeners
from tessera.apps.recovery import PROMPT
from tessera.apps.serving import serve_all
from tessera.apps.working import Work, running
from tessera.kube.access import find_access
from tessera.kube.client import Client
from tessera.kube.following import Following, holder_on
from tessera.kube.leases import Election
from tessera.kube.objects import ObjectKey
from tessera.kube.reconciler import Again, Reconciler
from tessera.scheduler.extender import Extender
from tessera.scheduler.hami_metrics import HamiPage
from tessera.scheduler.metrics import Figures, Standing
from tessera.scheduler.reporting import Reporter
from tessera.scheduler.volcano import Volcano
from tessera.scheduler.waking import LOOK_AGAIN_S, Waiting

LEASE = ObjectKey("kube-system", "tessera-scheduler")


async def run(options: Options) -> None:
    async with Client(find_access(options.kubeconfig)) as client:
        scheduling = Scheduling(client, options)
        listeners = Listeners(client, options, scheduling)
        async with running(*scheduling.works(), *listeners.works()):
            await serve_all(*listeners.all())
        await scheduling.leave()


class Scheduling(Deciding):
    """Everything that decides, and those who ask: kube-scheduler and Volcano."""

    def __init__(self, client: Client, options: Options) -> None:
        self._election = Election(client, LEASE, socket.gethostname()) if options.leader_elect else None
        leading = self._election or _following(client, options)
        super().__init__(
            client,
            options.policy,
            leading=leading,
            tells_binds=options.bind_events,
            lease_namespace=options.lease_namespace,
        )
        self.waiting = Waiting(
            client, self.could_be_placed, self.lasting_request, is_promised=self.phases.gangs.is_promised
        )
        self._waking: Reconciler[str] = Reconciler("waiting pods", self._wake, workers=1, backoff=PROMPT)
        self.phases.refused = self.waiting.remember
        self.phases.gangs.planned = partial(self._waking.mark, "all")
        self.waiting.found = partial(self._waking.mark, "all")
        self.world.freed = self._look_again
        self.pods.subscribe(self.waiting.pod_changed)
        self.figures = Figures(Standing(self.world, self.waiting, self.recovery.drift, self.recorder, self.decides))
        witness = Reporter(self.figures, self.teller)
        self.extender = Extender(self.phases, self.binder, is_ready=self.decides, witness=witness)
        self.volcano = Volcano(self.world, self.phases, is_ready=self.decides)
        self.page = HamiPage(self.world, self.pods, self.namespaces_with_quotas, old_names=options.legacy_metrics)

    def works(self) -> list[Work]:
        return [*super().works(), self._waking.run()]

    async def leave(self) -> None:
        if self._election:
            await self._election.resign()

    async def _wake(self, key: str) -> Again | None:
        """Only who decides knows whether a pod would be placed now."""
        return await self.waiting.wake(key) if self.decides() else Again(LOOK_AGAIN_S)

    def _look_again(self) -> None:
        self.waiting.note_change()
        self._waking.mark("all")
        self.recovery.look_again()


def _following(client: Client, options: Options) -> Following | None:
    """Lead while the kube-scheduler beside us does."""
    if options.follow_lease is None:
        return None
    return Following(client, options.follow_lease, holder_on(options.follow_host))
