"""Memory of this process that lies in a region already, and how to find out that a tensor does.

`allocate` makes such memory, for tensors that are to be handed over without a copy. Each has a region of its own: who
is handed a region can read all of it.
"""

import resource
import weakref
from dataclasses import dataclass

from kpu.sharing.mappings import Bytes, view_again
from kpu.sharing.regions import Region, make_region

REGIONS_LIMIT = 1024
_regions: dict[int, Region] = {}
_alive: "weakref.WeakSet[Region]" = weakref.WeakSet()


@dataclass(frozen=True)
class Place:
    region: Region
    offset: int


def allocate(nbytes: int) -> Bytes | None:
    """Bytes in a region of their own, freed with the last tensor that views them; None where there is no region left.

    A region takes a descriptor for as long as it can be shown to somebody, so those may take a quarter of what the
    process may open and no more. A peer that views it keeps it alive beyond that; such regions count too.
    """
    may_open, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    if nbytes <= 0 or len(_regions) >= may_open // 4 or len(_alive) >= REGIONS_LIMIT:
        return None
    try:
        region = make_region(nbytes)
    except OSError:
        return None
    memory = view_again(region.memory.data, 0, nbytes)
    address = memory.ctypes.data
    _regions[address] = region
    _alive.add(region)
    weakref.finalize(memory, _let_go, address).atexit = False
    return memory


def locate(data: Bytes) -> Place | None:
    """Where in a region these bytes lie, if they do."""
    address = data.ctypes.data
    region = _regions.get(address)
    if region and data.nbytes <= region.size:
        return Place(region, 0)
    for start, region in list(_regions.items()):
        if start <= address and address + data.nbytes <= start + region.size:
            return Place(region, address - start)
    return None


def _let_go(address: int) -> None:
    """No tensor of ours lies there any more, so nobody can be shown the region who has not been."""
    region = _regions.pop(address, None)
    if region:
        region.close_file()
