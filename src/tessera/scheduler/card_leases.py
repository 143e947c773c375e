"""Taking the Leases of cards: by creating them, so that of two who want a card one gets it.

The ledger has decided already that the card is free, so a Lease that stands in the way is left over from somebody who
is dead or gave up, unless others than us give cards away here. Whoever holds it is therefore looked for in the API
itself. A Lease is taken over on the condition that nobody has touched it meanwhile.
"""

import asyncio
from collections.abc import Awaitable, Callable, Sequence

from tessera.errors import AlreadyExists, BindRefused, Conflict, KubeError, NotFound
from tessera.kube.client import Client
from tessera.kube.kinds import LEASES
from tessera.kube.objects import Document
from tessera.kube.timing import SYSTEM_CLOCK, Clock
from tessera.model.card_leases import CardRef, Hold, holders_in, is_shared, joined, lease_for
from tessera.model.requests import PodRef

MOST_TRIES = 8


class CardLeases:
    """`is_alive` says whether a pod may still use a card that it once held."""

    def __init__(
        self,
        client: Client,
        namespace: str,
        is_alive: Callable[[PodRef, CardRef], Awaitable[bool]],
        *,
        clock: Clock = SYSTEM_CLOCK,
    ) -> None:
        self._client = client
        self._namespace = namespace
        self._is_alive = is_alive
        self._clock = clock

    async def acquire(self, pod: PodRef, cards: Sequence[CardRef], *, shared: bool) -> None:
        """All of them at once; BindRefused, if one cannot be had. Those taken then are for the keeper to give back."""
        tries = [self._acquire(pod, card, shared=shared) for card in cards]
        for outcome in await asyncio.gather(*tries, return_exceptions=True):
            if isinstance(outcome, KubeError):
                raise BindRefused(f"{pod}: the lease of a card cannot be taken: {outcome}") from outcome
            if isinstance(outcome, BaseException):
                raise outcome

    async def _acquire(self, pod: PodRef, card: CardRef, *, shared: bool) -> None:
        for _ in range(MOST_TRIES):
            lease = await self._create(card, Hold((pod,), shared, until_bound=True))
            if lease is None:
                return
            hold = await self._next_hold(pod, card, lease, shared=shared)
            try:
                await self.replace(card, hold, lease)
            except (Conflict, NotFound):
                continue
            return
        raise BindRefused(f"{pod}: the lease {card.lease_name} changes all the time; try again")

    async def _create(self, card: CardRef, hold: Hold) -> Document | None:
        """None, if it is ours now; else the Lease that is there."""
        for _ in range(MOST_TRIES):
            try:
                await self.create(card, hold)
            except AlreadyExists:
                lease = await self.find(card.lease_name)
                if lease is not None:
                    return lease
            else:
                return None
        raise BindRefused(f"{hold.pods[0]}: the lease {card.lease_name} comes and goes; try again")

    async def _next_hold(self, pod: PodRef, card: CardRef, lease: Document, *, shared: bool) -> Hold:
        """Who is to hold the Lease that is there. BindRefused, if somebody does who will not share."""
        others = [holder for holder in holders_in(lease) if holder.uid != pod.uid]
        living = [holder for holder in others if await self._is_alive(holder, card)]
        if living and not (shared and is_shared(lease)):
            whose = f"pod {living[0]}" if living[0].name else f"a pod with UID {living[0].uid}"
            raise BindRefused(f"{pod}: {card} is leased to {whose} ({self._namespace}/{card.lease_name})")
        return Hold(joined(living, pod), shared, until_bound=True)

    async def find(self, name: str) -> Document | None:
        try:
            return await self._client.get(LEASES, name, namespace=self._namespace)
        except NotFound:
            return None

    async def create(self, card: CardRef, hold: Hold) -> None:
        await self._client.create(LEASES, lease_for(card, hold, self._clock.wall()), namespace=self._namespace)

    async def replace(self, card: CardRef, hold: Hold, before: Document) -> None:
        """Conflict, if it is not as it was before."""
        lease = lease_for(card, hold, self._clock.wall(), before)
        await self._client.replace(LEASES, card.lease_name, lease, namespace=self._namespace)
