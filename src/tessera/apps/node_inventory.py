"""What a node shows of itself to gRPC clients."""

from tessera.apps.addresses import Address
from tessera.apps.node_figures import NodeStanding
from tessera.apps.working import Work
from tessera.node.inventory_service import InventoryService, serve_inventory


def inventory_works(node: str, state: NodeStanding, address: Address | None) -> list[Work]:
    """`address` is where they ask; None if nowhere."""
    if address is None:
        return []
    service = InventoryService(node, state.cards, state.held, state.cards.news, lambda: state.uses.uses)
    return [serve_inventory(service, *address)]
