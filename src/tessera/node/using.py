"""What containers use of their cards, by the regions that their processes keep.

A region that cannot be read is said once and shown as nothing: the container that spoiled it harms its own figures.
"""

import asyncio
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import msgspec
import structlog

from tessera.errors import InvalidRegion
from tessera.kube.timing import SYSTEM_CLOCK, Clock
from tessera.model.allocations import CardShare
from tessera.model.requests import PodRef
from tessera.node.news import News
from tessera.node.regions import Region, RegionCard, RegionProcess, read_region
from tessera.node.run_directory import RunDirectory
from tessera.node.tiles import Tile

log: structlog.stdlib.BoundLogger = structlog.get_logger(__name__)
LOOK_AGAIN_S = 2.0


class ContainerKey(NamedTuple):
    pod: PodRef
    container: str


class CardUse(msgspec.Struct, frozen=True, kw_only=True):
    """One card of one container. `position` is its place there; `busy_percent` of the card's time since the last look,
    None where there was none before; `spilled_bytes` lie in the host's memory and are no part of what is used.
    """

    holder: ContainerKey
    position: int
    share: CardShare
    now: RegionCard
    processes: int
    busy_percent: float | None = None
    spilled_bytes: int = 0


class ContainerUses:
    """`tiles` are those on disk. `is_unfinished` says whether a pod has yet to end, by the API's word; one that has
    ended is shown while it has processes all the same. `look` keeps the rest as it is now.
    """

    def __init__(
        self,
        run: RunDirectory,
        tiles: Callable[[], Iterable[Tile]],
        *,
        is_unfinished: Callable[[str], bool] = lambda _: True,
        clock: Clock = SYSTEM_CLOCK,
    ) -> None:
        self._run = run
        self._tiles = tiles
        self._is_unfinished = is_unfinished
        self._clock = clock
        self._looked_s = clock.monotonic_s()
        self.news = News()
        """Tells when other regions cannot be read than before."""
        self.uses: tuple[CardUse, ...] = ()
        self.unreadable: Mapping[ContainerKey, str] = {}
        self.processes: Mapping[ContainerKey, tuple[RegionProcess, ...]] = {}
        """Of every container that has used a card."""

    def region_of(self, holder: ContainerKey) -> Path:
        return self._run.region(holder.pod.uid, holder.container)

    async def run(self) -> None:
        while True:
            await self.look()
            await self._clock.sleep(LOOK_AGAIN_S)

    async def look(self) -> None:
        shares = shares_of(self._tiles())
        found, spoiled = await asyncio.to_thread(self._read, shares)
        regions = {who: region for who, region in found.items() if region.processes or self._is_unfinished(who.pod.uid)}
        unreadable = {who: why for who, why in spoiled.items() if self._is_unfinished(who.pod.uid)}
        for holder in unreadable.keys() - self.unreadable.keys():
            log.warning("region not read", pod=str(holder.pod), container=holder.container, error=unreadable[holder])
        now_s = self._clock.monotonic_s()
        before = {(use.holder, use.share.uuid): use.now.gpu_ns for use in self.uses}
        self.uses = tuple(
            with_busy(use, before.get((use.holder, use.share.uuid)), now_s - self._looked_s)
            for holder, region in regions.items()
            for use in uses_of(holder, shares[holder], region)
        )
        self.processes = {holder: region.processes for holder, region in regions.items()}
        is_news = unreadable != self.unreadable
        self.unreadable, self._looked_s = unreadable, now_s
        if is_news:
            self.news.spread()

    def _read(self, holders: Iterable[ContainerKey]) -> tuple[dict[ContainerKey, Region], dict[ContainerKey, str]]:
        regions, unreadable = dict[ContainerKey, Region](), dict[ContainerKey, str]()
        for holder in holders:
            try:
                region = read_region(self.region_of(holder))
            except InvalidRegion as error:
                unreadable[holder] = str(error)
                continue
            if region is not None:
                regions[holder] = region
        return regions, unreadable


def shares_of(tiles: Iterable[Tile]) -> dict[ContainerKey, Sequence[CardShare]]:
    """By container. One that has its cards by a claim and by count has two tiles of the same."""
    shares: dict[ContainerKey, Sequence[CardShare]] = {}
    for tile in tiles:
        shares.setdefault(ContainerKey(tile.pod, tile.container), tile.shares)
    return shares


def uses_of(holder: ContainerKey, shares: Sequence[CardShare], region: Region) -> list[CardUse]:
    """Of cards that the container was given; whatever else its region names is not shown.

    Two shares of one card are used as one, and told at the place of the first.
    """
    cards = {card.uuid: card for card in region.cards}
    return [
        CardUse(
            holder=holder,
            position=position,
            share=share,
            now=now,
            processes=len(region.processes),
            spilled_bytes=spilled.used_bytes if (spilled := cards.get(spill_name(share.uuid))) else 0,
        )
        for position, share in enumerate(shares)
        if (now := cards.pop(share.uuid, None)) is not None
    ]


def spill_name(uuid: str) -> str:
    """Under which a region has what lies in the host's memory in place of this card's."""
    return f"host-{uuid[4:]}"


def with_busy(use: CardUse, gpu_ns_before: int | None, seconds: float) -> CardUse:
    """A counter that went back is that of a container that began anew."""
    if gpu_ns_before is None or seconds <= 0 or use.now.gpu_ns < gpu_ns_before:
        return use
    return msgspec.structs.replace(use, busy_percent=(use.now.gpu_ns - gpu_ns_before) / (seconds * 1e9) * 100)
