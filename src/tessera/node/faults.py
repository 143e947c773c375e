"""Faults that a driver tells of, followed for as long as the node is there."""

import asyncio

import structlog

from tessera.errors import DiscoveryFailed
from tessera.node.cards import Cards
from tessera.vendors.backends import Watch

log: structlog.stdlib.BoundLogger = structlog.get_logger(__name__)
RETRY_S = 30.0


async def follow_faults(cards: Cards, watch: Watch) -> None:
    while True:
        try:
            for fault in await watch.upcoming_faults():
                log.warning("fault told", uuid=fault.uuid, xid=fault.number)
                cards.note_fault(fault.uuid, fault.number)
        except DiscoveryFailed:
            await asyncio.sleep(RETRY_S)
