"""Whether a pod that finds no node could ever find one: tried on the nodes as they are, with nobody on them. Pure.

What passes by itself, a node that is not ready or a card that is cordoned, is no reason to give up. Neither is a
cluster without nodes, which may be about to get some.
"""

from collections.abc import Iterable

from tessera.engine.deciding import Decider
from tessera.engine.ledger import Ledger
from tessera.engine.policies import PolicyBook
from tessera.errors import InvalidInput
from tessera.model.annotations.keys import CLAIM
from tessera.model.catalogue import Catalogue
from tessera.model.nodes import NodeDocument, read_node
from tessera.model.pods import read_pod_request
from tessera.model.refusals import Reason
from tessera.model.requests import DEFAULT_POLICY
from tessera.operators.compute_pods import ComputePod
from tessera.vendors.rules import refine

LASTING = frozenset(
    {
        Reason.NODE_SELECTOR,
        Reason.HOST_CPU,
        Reason.HOST_MEMORY,
        Reason.NO_CARDS,
        Reason.TOO_FEW_CARDS,
        Reason.CARD_TYPE,
        Reason.CARD_UUID,
        Reason.CARD_MEMORY,
        Reason.CARD_CORES,
        Reason.CARD_NUMA,
        Reason.CARDS_TOGETHER,
    }
)


def can_never_be_placed(pod: ComputePod, nodes: Iterable[NodeDocument], catalogue: Catalogue) -> bool:
    """A pod with a claim is judged by its claim, and a node that cannot be read may still do."""
    document = {"metadata": {"name": pod.name, "annotations": pod.metadata.annotations}, "spec": pod.spec}
    if CLAIM in (pod.metadata.annotations or {}):
        return False
    ledger = Ledger()
    try:
        for node in nodes:
            ledger.put_node(read_node(node, catalogue).node)
        request = read_pod_request(document, catalogue, refine)
    except InvalidInput:
        return False
    decider = Decider(ledger, PolicyBook(ledger.fleet, ledger.live, default=DEFAULT_POLICY))
    refusals = decider.refusals(request)
    there = len(ledger.fleet)
    return 0 < there == len(refusals) and all(refusal.reason in LASTING for refusal in refusals)
