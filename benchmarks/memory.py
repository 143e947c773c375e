"""How much memory a device and a placed pod cost, as the process grows.

Floor, in the same run: a Python dict with the same number of entries from UUID to a tuple of three integers.
"""

import gc
from pathlib import Path

from benchmarks.clusters import Cluster, a_node
from tessera.engine.ledger import Ledger
from tessera.model.requests import PolicyChoice

NODES, PODS = 5_000, 40_000


def main() -> None:
    print(f"memory, {NODES} nodes of 8 cards, {PODS} pods")
    before = resident_bytes()
    plain = {f"GPU-{number:08x}-0000-4000-8000-{number:012x}": (number, 0, 0) for number in range(NODES * 8)}
    print(f"  floor: dict entry per device     {(resident_bytes() - before) / len(plain):8.0f} bytes")
    before = resident_bytes()
    ledger = Ledger()
    for number in range(NODES):
        ledger.put_node(a_node(number))
    print(f"  ledger, per device               {(resident_bytes() - before) / (NODES * 8):8.0f} bytes")
    cluster = Cluster(NODES, PolicyChoice(node="binpack", cards=("binpack",)))
    cluster.fill(200)
    before = resident_bytes()
    cluster.fill(PODS)
    print(f"  ledger and caches, per pod       {(resident_bytes() - before) / (PODS - 200):8.0f} bytes")
    print(f"  the whole process now            {resident_bytes() / 2**20:8.0f} MiB")


def resident_bytes() -> int:
    gc.collect()
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * 4096


def proportional_bytes(pid: int) -> int:
    """Of another process: what it shares with others counts by its part."""
    lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("Pss:")) * 1024


if __name__ == "__main__":
    main()
