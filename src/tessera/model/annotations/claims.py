"""What a pod says of the cards that it holds by a claim.

`gpu.scheduling/allocated` is `node-a:0,1`: a wish in a new pod, and what became of it afterwards. Ids change when a
card is added or fails, so the cards themselves stand beside it, by UUID, and a third annotation has nothing but what
CUDA_VISIBLE_DEVICES takes: a container resolves it when it starts.
"""

from collections.abc import Mapping

import msgspec

from tessera.model.allocations import Allocation, ContainerShares
from tessera.model.annotations import keys
from tessera.model.annotations.allocations import decode_seed_devices, encode_seed_devices
from tessera.model.annotations.complaints import invalid
from tessera.model.annotations.limits import written_name
from tessera.model.annotations.records import whole_number
from tessera.model.annotations.results import index_of

_EXPECTED = "a node and the ids of its cards such as node-a:0,1"


class Pin(msgspec.Struct, frozen=True):
    """Exactly these cards of this node."""

    node: str
    ids: tuple[int, ...]

    def __str__(self) -> str:
        return f"{self.node}:{','.join(map(str, self.ids))}"


def claim_marks(allocation: Allocation, indexes: Mapping[str, int]) -> dict[str, str]:
    """The annotations of a pod that got these cards by a claim. `indexes` gives each card's id on its node."""
    ids = sorted((index_of(share, indexes), share.uuid) for share in allocation.claimed)
    return {
        keys.PIN: str(Pin(allocation.node, tuple(index for index, _ in ids))),
        keys.CLAIMED: encode_seed_devices(Allocation(allocation.node, claimed=allocation.claimed)),
        keys.VISIBLE_DEVICES: ",".join(written_name(uuid, f"card {uuid}", "id", ",") for _, uuid in ids),
    }


def read_claimed(annotations: Mapping[str, str], where: str) -> ContainerShares:
    return decode_seed_devices(annotations.get(keys.CLAIMED, ""), f"{where}: {keys.CLAIMED}")


def read_pin(annotations: Mapping[str, str], where: str) -> Pin | None:
    """Which cards the pod wants and no others, if it says so."""
    text = annotations.get(keys.PIN, "").strip()
    if not text:
        return None
    node, between, listed = text.rpartition(":")
    if not between or not node.strip() or not listed.strip():
        raise invalid(where, keys.PIN, text, _EXPECTED)
    ids = tuple(whole_number(one.strip(), where, keys.PIN, _EXPECTED) for one in listed.split(","))
    if len(set(ids)) != len(ids):
        raise invalid(where, keys.PIN, text, f"each id once, {_EXPECTED}")
    return Pin(node.strip(), tuple(sorted(ids)))
