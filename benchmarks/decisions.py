"""One decision, filter and score over all nodes, with pods coming and going.

Peer, in the same run: the same pods decided as an extender decides that rebuilds the usage of every node from all
pods and then walks all cards, in plain Python. Floor: one pass of numpy over as many cards.
"""

from collections.abc import Callable
from time import perf_counter

import numpy as np
from msgspec.structs import replace

from benchmarks.clusters import Cluster, many_shapes
from tessera.engine.ledger import Ledger
from tessera.model.requests import PodRequest, PolicyChoice

WARM_UP, MEASURED = 1_500, 3_000
HAMI_POLICIES = ("binpack", "spread", "topology-aware", "mutex", "numa")


def main() -> None:
    print(f"{'nodes x cards':>14} {'pods':>7}  {'policy':<16} {'p50 ms':>8} {'p99 ms':>8} {'max ms':>8}")
    for nodes, pods in ((1_000, 10_000), (5_000, 40_000), (15_000, 100_000)):
        measured = MEASURED if nodes <= 5_000 else 1_000
        for name in (*HAMI_POLICIES, "defrag") if nodes == 1_000 else ("binpack", "defrag"):
            cluster = Cluster(nodes, PolicyChoice(node="binpack", cards=("binpack",)))
            cluster.fill(pods)
            choice = _choice(name)
            _print(nodes, pods, name, _steady_state(cluster, choice, measured))
    _print_growth()
    _print_many_shapes()
    _print_peers()


def _choice(name: str) -> PolicyChoice:
    node = name if name in ("binpack", "spread", "topology-aware", "defrag") else "binpack"
    return PolicyChoice(node=node, cards=(name,))


def _steady_state(cluster: Cluster, choice: PolicyChoice, measured: int) -> np.ndarray:
    """Milliseconds of each decision while a pod leaves for every one that comes."""
    times: list[float] = []
    for turn in range(WARM_UP + measured):
        cluster.leave()
        request = replace(cluster.draw(), policy=choice)
        cluster.decider.observe(request)
        began = perf_counter()
        cluster.decider.candidates(request)
        took = perf_counter() - began
        cluster.place(request)
        if turn >= WARM_UP:
            times.append(took * 1e3)
    return np.array(times)


def _print(nodes: int, pods: int, policy: str, times: np.ndarray) -> None:
    p50, p99 = np.percentile(times, [50, 99])
    print(f"{f'{nodes} x 8':>14} {pods:>7}  {policy:<16} {p50:>8.3f} {p99:>8.3f} {times.max():>8.3f}", flush=True)


def _print_growth() -> None:
    print("\nmore pods, same changes (1000 x 8, binpack):")
    cluster = Cluster(1_000, PolicyChoice(node="binpack", cards=("binpack",)))
    for pods in (1_000, 4_000, 10_000):
        cluster.fill(pods)
        _print(1_000, pods, "binpack", _steady_state(cluster, _choice("binpack"), 1_000))


def _print_many_shapes() -> None:
    print("\ntwo hundred shapes, twelve models (5000 x 8, defrag):")
    binpack = PolicyChoice(node="binpack", cards=("binpack",))
    cluster = Cluster(5_000, binpack, wanted=many_shapes(), models=12)
    cluster.fill(10_000)
    _print(5_000, 10_000, "defrag", _steady_state(cluster, _choice("defrag"), 2_000))


def _print_peers() -> None:
    print("\nin the same run (1000 x 8, 10000 pods):")
    cluster = Cluster(1_000, PolicyChoice(node="binpack", cards=("binpack",)))
    cluster.fill(10_000)
    fleet, requests = cluster.ledger.fleet, [cluster.draw() for _ in range(5)]
    rebuilt = _time(lambda turn: _decide_by_rebuilding(cluster.ledger, requests[turn]), 5)
    floor = _time(lambda _: (fleet.free_memory >= 1_000) & (fleet.free_slots > 0), 200)
    print(f"  rebuild and walk, plain Python   {rebuilt:8.3f} ms")
    print(f"  one numpy pass over all cards    {floor:8.3f} ms")


def _time(call: Callable[[int], object], turns: int) -> float:
    times: list[float] = []
    for turn in range(turns):
        began = perf_counter()
        call(turn)
        times.append(perf_counter() - began)
    return float(np.median(times)) * 1e3


def _decide_by_rebuilding(ledger: Ledger, request: PodRequest) -> str | None:
    used: dict[str, list[int]] = {}
    for holding in ledger:
        for share in holding.allocation.shares:
            card = used.setdefault(share.uuid, [0, 0, 0])
            card[0] += 1
            card[1] += share.memory_mib
            card[2] += share.cores_percent
    fleet, device, best = ledger.fleet, request.containers[0].devices[0], (-1.0, "")
    for row, name in enumerate(fleet.names):
        fitting, full = 0, 0.0
        for column, uuid in enumerate(fleet.uuids[row]):
            kind = fleet.kinds[fleet.kind[row, column]]
            slots, memory, cores = used.get(uuid, (0, 0, 0))
            full += slots / kind.slots + memory / kind.memory_mib + cores / kind.cores_percent
            idle_enough = not slots or device.cores_percent < 100
            fitting += (
                slots < kind.slots
                and memory + device.memory_on(kind.memory_mib) <= kind.memory_mib
                and cores + max(device.cores_percent, 1) <= kind.cores_percent
                and idle_enough
            )
        if fitting >= device.count and full > best[0]:
            best = full, name
    return best[1] or None


if __name__ == "__main__":
    main()
