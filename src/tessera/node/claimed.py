"""Cards that a pod has claimed as a whole, as one of its containers may use them.

All containers see all of them. What a container asks for itself limits that container; where it asks for nothing, what
was claimed does. A figure of 0 is no limit.
"""

import msgspec

from tessera.model.allocations import CardShare
from tessera.model.claims import WHOLE
from tessera.model.requests import DeviceRequest


def limit_share(share: CardShare, asked: DeviceRequest, card_memory_mib: int) -> CardShare:
    """`asked` is what the container says of such cards."""
    memory_mib = 0 if asked.memory_percent == WHOLE else asked.memory_on(card_memory_mib)
    return msgspec.structs.replace(
        share,
        memory_mib=_smaller(memory_mib, share.memory_mib),
        cores_percent=_smaller(asked.cores_percent, share.cores_percent),
    )


def _smaller(own: int, claimed: int) -> int:
    return min(own, claimed) if own and claimed else own or claimed
