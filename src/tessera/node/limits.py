"""The limits file of a tile, mounted into its container: what the in-container library enforces.

Plain lines, a word and its values, because C reads it on the way of an allocation. A word that a reader does not know
is for a later release and is passed over. A figure of 0 is no limit. How the container is held to its limits is said
where it is not strictly.
"""

from tessera.model.allocations import CardShare
from tessera.node.terms import STRICT
from tessera.node.tiles import Tile

FILE_NAME = "limits"
VERSION = 1


def limits_text(tile: Tile) -> str:
    lines = [
        f"version {VERSION}",
        f"tile {tile.token}",
        f"pod {tile.pod.namespace} {tile.pod.name} {tile.pod.uid}",
        f"container {tile.container}",
    ]
    terms = tile.terms
    if terms.cores_policy != STRICT.cores_policy:
        lines.append(f"cores_policy {terms.cores_policy}")
    if terms.priority:
        lines.append(f"priority {terms.priority}")
    if terms.ends_on_refusal:
        lines.append("on_refusal terminate")
    lines += [_card_line(share, terms.spill_percent) for share in tile.shares]
    return "".join(f"{line}\n" for line in lines)


def _card_line(share: CardShare, spill_percent: int) -> str:
    line = f"card {share.uuid} memory_mib {share.memory_mib} cores_percent {share.cores_percent}"
    spill_mib = share.memory_mib * spill_percent // 100
    return f"{line} spill_mib {spill_mib}" if spill_mib else line
