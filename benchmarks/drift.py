"""What happens when the mix of pods changes: two rounds of one list, then three of another, with the load held.

Peer, in the same run: FGD, which is given the frequencies of both lists beforehand; `defrag` knows what it has seen.
Needs the openb trace, as the density benchmark does.
"""

from random import Random

from benchmarks.density import NODES, POLICIES, TRACES, do_without
from tessera.simulation.arrivals import arrivals_for
from tessera.simulation.replay import Replay
from tessera.simulation.scenario import Scenario
from tessera.simulation.trace import read_trace

CHANGES = (("default", "multigpu20"), ("gpushare40", "gpuspec10"))
HELD_PERCENT, SEED = 90, 42


def main() -> None:
    if not (TRACES / NODES).is_file():
        do_without("drift")
        return
    print(f"rejected in each round, load held at {HELD_PERCENT} %")
    for before, after in CHANGES:
        for policy in POLICIES:
            rounds = _rejected(_scenario(before), _scenario(after), policy)
            print(f"{before} twice, {after} three times {policy:>8}  {rounds}", flush=True)


def _rejected(before: Scenario, after: Scenario, policy: str) -> str:
    random, capacity = Random(SEED), before.capacity_milli
    replay = Replay(Scenario("both", before.nodes, before.pods + after.pods), policy, SEED)
    old, new = (arrivals_for(scenario.pods, wanted_milli=capacity * 1.3, random=random) for scenario in (before, after))
    shares: list[str] = []
    for queue in (old, old, new, new, new):
        offered = rejected = 0
        for pod in queue:
            replay.make_room(max(capacity * HELD_PERCENT / 100 - pod.milli, 0), random)
            offered += pod.milli
            rejected += 0 if replay.arrive(pod) else pod.milli
        shares.append(f"{100 * rejected / offered:5.2f} %")
    return " ".join(shares)


def _scenario(name: str) -> Scenario:
    return read_trace(TRACES / NODES, TRACES / f"openb_pod_list_{name}.csv")


if __name__ == "__main__":
    main()
