"""The limits file of a tile, mounted into its container: what the in-container library enforces.

Plain lines, a word and its values, because C reads it on the way of an allocation. A word that a reader does not know
is for a later release and is passed over. A figure of 0 is no limit.
"""

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
    for share in tile.shares:
        lines.append(f"card {share.uuid} memory_mib {share.memory_mib} cores_percent {share.cores_percent}")
    return "".join(f"{line}\n" for line in lines)
