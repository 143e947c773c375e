"""The ledger as a document: what is free on each card, and who holds what. For people, and for whoever compares."""

from typing import Any

from tessera.engine.ledger import Holding, Ledger
from tessera.scheduler.world import World


def ledger_document(world: World) -> dict[str, Any]:
    fleet = world.ledger.fleet
    return {
        "nodes": {name: {"cards": _cards(world.ledger, row)} for name, row in sorted(fleet.row_of.items())},
        "holdings": [_holding(holding) for holding in sorted(world.ledger, key=lambda held: str(held.ref))],
    }


def _cards(ledger: Ledger, row: int) -> dict[str, dict[str, int]]:
    fleet = ledger.fleet
    return {
        uuid: {
            "free_slots": int(fleet.free_slots[row, column]),
            "free_memory_mib": int(fleet.free_memory[row, column]),
            "free_cores_percent": int(fleet.free_cores[row, column]),
        }
        for column, uuid in enumerate(fleet.uuids[row])
    }


def _holding(holding: Holding) -> dict[str, Any]:
    return {
        "pod": str(holding.ref),
        "uid": holding.ref.uid,
        "node": holding.allocation.node,
        "state": str(holding.state),
        "cards": [
            {"uuid": share.uuid, "memory_mib": share.memory_mib, "cores_percent": share.cores_percent}
            for share in holding.allocation.shares
        ],
    }
