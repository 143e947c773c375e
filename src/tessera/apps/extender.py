"""`tessera run extender`: the scheduler's process. It reads the cluster's state, then answers kube-scheduler."""

import socket
from functools import partial
from pathlib import Path
from typing import Unpack

import click
import uvloop

from tessera.apps.deciding import Deciding
from tessera.apps.extender_options import Flags, Options, read_options
from tessera.apps.listeners import Listeners
from tessera.apps.recovery import PROMPT
from tessera.apps.serving import serve_all
from tessera.apps.working import Work, running
from tessera.engine.policies import DEFAULT
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


@click.command("extender")
@click.option("--kubeconfig", type=click.Path(path_type=Path), help="Which cluster; without it, as kubectl finds it.")
@click.option("--http", default="127.0.0.1:8080", show_default=True, help="Where to serve everything in plain HTTP.")
@click.option("--no-http", is_flag=True, help="Serve nothing in plain HTTP but --metrics.")
@click.option("--https", default="", help="Where to serve everything over TLS.")
@click.option("--tls-dir", type=click.Path(path_type=Path), help="The tls.crt and tls.key of --https; read anew.")
@click.option("--webhook", default="", help="Where to serve the webhook alone, over TLS.")
@click.option("--webhook-tls-dir", type=click.Path(path_type=Path), help="The webhook's tls.crt and tls.key.")
@click.option("--webhook-secret", default="", help="NAMESPACE/NAME of the Secret in which we keep its certificate.")
@click.option("--webhook-configuration", default="", help="The MutatingWebhookConfiguration that is to trust it.")
@click.option("--webhook-host", multiple=True, help="A name under which the API server calls it; may be repeated.")
@click.option("--metrics", default="", help="Where to serve /metrics and /ledger alone, in plain HTTP.")
@click.option("--legacy-metrics/--no-legacy-metrics", default=True, show_default=True, help="HAMi's old names too.")
@click.option("--bind-events", is_flag=True, help="HAMi's event for each bind; kube-scheduler has its own.")
@click.option("--node-policy", default=DEFAULT.node, show_default=True, help="For pods that name no node policy.")
@click.option(
    "--card-policy", default=",".join(DEFAULT.cards), show_default=True, help="For pods that name no card policy."
)
@click.option("--leader-elect", is_flag=True, help="One of several replicas decides, the one that has the lease.")
@click.option("--follow-lease", default="", help="NAMESPACE/NAME of kube-scheduler's lease; who is beside it decides.")
@click.option("--follow-host", default="", help="How that holder's name begins if it is ours; else our host name.")
def command(**flags: Unpack[Flags]) -> None:
    """Answer kube-scheduler on /filter, /prioritize and /bind, and the API server on /webhook."""
    uvloop.run(run(read_options(flags)))


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
        super().__init__(client, options.policy, leading=leading, tells_binds=options.bind_events)
        self.waiting = Waiting(client, self.phases.could_be_placed, self.world.request_of)
        self._waking: Reconciler[str] = Reconciler("waiting pods", self._wake, workers=1, backoff=PROMPT)
        self.phases.refused = self.waiting.remember
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
