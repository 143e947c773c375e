"""What all who manage others have in common: both caches, who belongs to whom, and when to look again."""

from collections.abc import Callable, Iterable, Sequence
from typing import Generic, TypeVar

from tessera.embedded.controllers.claiming import Claimant, claim
from tessera.embedded.controllers.marking import mark_controllers, mark_suitors
from tessera.embedded.controllers.objects import Thing
from tessera.embedded.controllers.watching import CONTROLLER, NAMESPACE, UNMANAGED, Watching
from tessera.embedded.controllers.writes import carry_out
from tessera.kube.client import Client
from tessera.kube.informer import Informer
from tessera.kube.kinds import Kind
from tessera.kube.objects import ObjectKey
from tessera.kube.reconciler import RETRIES, Reconcile, Reconciler
from tessera.kube.timing import Backoff

OwnerT = TypeVar("OwnerT", bound=Thing)
T = TypeVar("T", bound=Thing)


class Managing(Generic[OwnerT, T]):
    """Those of one kind and what they manage of another. `claimant` says what an owner would take in."""

    def __init__(
        self,
        client: Client,
        watching: Watching,
        kinds: tuple[Kind[OwnerT], Kind[T]],
        claimant: Callable[[OwnerT], Claimant],
        reconcile: Reconcile[ObjectKey],
        *,
        backoff: Backoff = RETRIES,
    ) -> None:
        kind, self._kind = kinds
        self._client = client
        self._claimant = claimant
        self.owners: Informer[OwnerT] = watching.follow(kind)
        self.things: Informer[T] = watching.follow(self._kind)
        self._reconciler: Reconciler[ObjectKey] = Reconciler(kind.plural, reconcile, backoff=backoff)
        self.mark = self._reconciler.mark
        self.owners.subscribe(lambda change: self.mark(change.key))
        self.things.subscribe(mark_controllers(kind, self.mark))
        self.things.subscribe(mark_suitors(self._claimants, self.mark))

    async def run(self) -> None:
        await self.owners.synced()
        await self.things.synced()
        await self._reconciler.run()

    async def claimed_by(self, owner: OwnerT) -> Sequence[T] | None:
        """What the owner manages. None, if some had to be taken in or let go first: then there is another turn."""
        managed = self.things.find(CONTROLLER, owner.metadata.uid)
        unmanaged = self.things.find(UNMANAGED, owner.metadata.namespace)
        mine, writes = claim(self._claimant(owner), self._kind, managed, unmanaged)
        if writes:
            await carry_out(self._client, writes)
            return None
        return mine

    def _claimants(self, namespace: str) -> Iterable[Claimant]:
        return map(self._claimant, self.owners.find(NAMESPACE, namespace))
