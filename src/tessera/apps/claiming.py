"""Claims to cards and gangs of pods, put together: what the API says of them, and the Leases of claimed cards."""

from collections.abc import Callable
from functools import partial
from typing import Any

from tessera.apps.recovery import PROMPT
from tessera.apps.working import Work
from tessera.kube.caching import Change, IndexBy
from tessera.kube.client import Client
from tessera.kube.informer import Informer
from tessera.kube.kinds import LEASES, Selection
from tessera.kube.objects import Document, ObjectKey
from tessera.kube.pods import Pod
from tessera.kube.reconciler import Again, Reconciler
from tessera.kube.timing import Backoff
from tessera.model.card_leases import card_of
from tessera.scheduler.card_leases import CardLeases
from tessera.scheduler.claims import CACHED_CLAIMS, claim_of
from tessera.scheduler.gang_members import gang_said_by
from tessera.scheduler.gang_sizes import CACHED_GANGS, CACHED_GROUPS
from tessera.scheduler.gangs import Gangs
from tessera.scheduler.lease_keeping import LeaseHolders, LeaseKeeper
from tessera.scheduler.world import World

BY_UID, BY_CLAIM, BY_GANG = "uid", "claim", "gang"
OFTEN_ENOUGH = Backoff(first_s=0.5, most_s=5.0)
"""A definition may be installed after us, and its first object with it."""


def _uid_of(pod: Pod) -> tuple[str, ...]:
    return (pod.metadata.uid or "",)


PODS_BY: dict[str, IndexBy[Pod]] = {BY_UID: _uid_of, BY_CLAIM: claim_of, BY_GANG: gang_said_by}
"""The indexes over pods that are needed here."""


class Claiming:
    """`lingers` says of a pod that is gone whether its processes may not be; `may_write` whether we lead and know all.

    `namespace` is where the Leases of cards are.
    """

    def __init__(
        self,
        client: Client,
        world: World,
        gangs: Gangs,
        pods: Informer[Pod],
        namespace: str,
        *,
        lingers: Callable[[str, str], bool],
        may_write: Callable[[], bool],
    ) -> None:
        self._pods = pods
        self._claims = Informer(client, CACHED_CLAIMS, may_be_absent=True, backoff=OFTEN_ENOUGH)
        self._gangs = Informer(client, CACHED_GANGS, may_be_absent=True, backoff=OFTEN_ENOUGH)
        self._groups = Informer(client, CACHED_GROUPS, may_be_absent=True)
        self._leases = Informer(client, LEASES, Selection(namespace=namespace))
        self.informers: tuple[Informer[Any], ...] = (self._claims, self._gangs, self._groups, self._leases)
        holders = LeaseHolders(client, world.ledger, self._find_uid, lingers)
        self.leases = CardLeases(client, namespace, holders.is_alive)
        self._keeping: Reconciler[str] = Reconciler("card leases", self._keep, backoff=PROMPT)
        self._keeper = LeaseKeeper(
            client, namespace, world, self.leases, holders, may_write=may_write, mark=self._keeping.mark
        )
        self._unseen: set[str] = set()
        world.naming = partial(self._find, BY_CLAIM)
        world.claim_held, world.claim_let_go = self._keeper.held, self._keeper.let_go
        gangs.members.saying = partial(self._find, BY_GANG)
        self._claims.subscribe(world.claim_changed)
        self._gangs.subscribe(gangs.gang_changed)
        self._groups.subscribe(gangs.group_changed)
        self._leases.subscribe(self._lease_changed)
        pods.subscribe(gangs.pod_changed)

    @property
    def is_settled(self) -> bool:
        """Whether every Lease that was there before us has been looked at: it may say that a card is still used."""
        return not self._unseen

    def works(self) -> list[Work]:
        return [*(informer.run() for informer in self.informers), self._keeping.run()]

    def _lease_changed(self, change: Change[Document]) -> None:
        if not self._leases.is_synced and change.after is not None and card_of(change.after) is not None:
            self._unseen.add(change.key.name)
        self._keeper.lease_changed(change)

    async def _keep(self, name: str) -> Again | None:
        again = await self._keeper.keep(name)
        if self._keeper.may_write():
            self._unseen.discard(name)
        return again

    def _find(self, index: str, key: ObjectKey) -> list[Pod]:
        return self._pods.find(index, str(key))

    def _find_uid(self, uid: str) -> Pod | None:
        return next(iter(self._pods.find(BY_UID, uid)), None)
