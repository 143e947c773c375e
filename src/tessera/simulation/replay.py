"""One policy, one order of arrivals, from an empty cluster on, through the real ledger and the real decisions.

Without churn nothing leaves, and the question is how full the cluster gets. With churn the arrivals come four times;
before each one random pods leave until it would fit under the load that is held, and the question is how much of the
demand of the last two rounds is turned away.
"""

from collections.abc import Callable
from random import Random
from time import perf_counter

import msgspec

from tessera.engine.deciding import Decider
from tessera.engine.ledger import Ledger
from tessera.engine.policies import PolicyBook
from tessera.model.requests import PodRef, PodRequest
from tessera.simulation.arrivals import arrivals_for
from tessera.simulation.choices import parse_choice
from tessera.simulation.scenario import Arrival, Scenario

ROUNDS = 4
CURVE_POINTS = 130
NEARLY = 0.5  # arrivals end a hair beside the wanted demand, because pods come whole
FOREVER = float("inf")


class Outcome(msgspec.Struct, frozen=True, kw_only=True):
    """`curve` holds the allocated percentage at each whole percent of arrived demand.

    A figure at a demand that never arrived is None. Under churn both figures and the curve are of the first round.
    """

    seed: int
    allocated_percent_at_100: float | None
    allocated_percent_at_130: float | None
    rejected_percent: float
    decisions_per_second: float
    pods: int
    curve: tuple[float, ...] = ()


class Replay:
    def __init__(self, scenario: Scenario, policy: str, seed: int) -> None:
        self._ledger = Ledger()
        for node in scenario.nodes:
            self._ledger.put_node(node)
        choice = parse_choice(policy)
        book = PolicyBook(self._ledger.fleet, self._ledger.live, default=choice, seed=seed)
        if "fgd" in (choice.node, *choice.cards):
            book.fgd.study([pod.request for pod in scenario.pods])
        self._decider = Decider(self._ledger, book)
        self._live: list[tuple[str, int]] = []
        self._placed = 0
        self.allocated_milli = 0
        self.decisions = 0
        self.seconds = 0.0

    def arrive(self, pod: Arrival) -> bool:
        """Decide on a pod and place it, or turn it away."""
        began = perf_counter()
        request: PodRequest = pod.request
        self._decider.observe(request)
        allocation = self._decider.choose(request)
        if allocation is not None:
            self._placed += 1
            uid = str(self._placed)
            self._ledger.reserve(PodRef("simulated", pod.name, uid), request, allocation, expires_at=FOREVER)
            self._ledger.commit(uid)
            self._live.append((uid, pod.milli))
            self.allocated_milli += pod.milli
        self.seconds += perf_counter() - began
        self.decisions += 1
        return allocation is not None

    def make_room(self, limit_milli: float, random: Random) -> None:
        """Let random pods leave until no more than this is allocated."""
        while self.allocated_milli > limit_milli and self._live:
            position = random.randrange(len(self._live))
            self._live[position], self._live[-1] = self._live[-1], self._live[position]
            uid, milli = self._live.pop()
            self._ledger.release(uid)
            self.allocated_milli -= milli


def run(
    scenario: Scenario,
    *,
    policy: str,
    seed: int,
    demand_percent: float = 130.0,
    churn_percent: float | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> Outcome:
    random = Random(seed)
    capacity = scenario.capacity_milli
    queue = arrivals_for(scenario.pods, wanted_milli=capacity * demand_percent / 100, random=random)
    replay = Replay(scenario, policy, seed)
    rounds = 1 if churn_percent is None else ROUNDS
    limit = None if churn_percent is None else capacity * churn_percent / 100
    curve, tally = _Curve(capacity), _Tally(counts_from=rounds // 2 * len(queue))
    for arrived, pod in enumerate(queue * rounds):
        if limit is not None:
            replay.make_room(max(limit - pod.milli, 0), random)
        tally.count(arrived, pod.milli, accepted=replay.arrive(pod))
        if arrived < len(queue):
            curve.add(pod.milli, replay.allocated_milli)
        if progress is not None and arrived % 64 == 0:
            progress(arrived, rounds * len(queue))
    return Outcome(
        seed=seed,
        allocated_percent_at_100=curve.at(100),
        allocated_percent_at_130=curve.at(130),
        rejected_percent=round(tally.rejected_percent(), 4),
        decisions_per_second=round(replay.decisions / max(replay.seconds, 1e-9), 1),
        pods=rounds * len(queue),
        curve=tuple(round(point, 3) for point in curve.points),
    )


class _Curve:
    """What was allocated when the arrived demand first reached each percent of the capacity."""

    def __init__(self, capacity: int) -> None:
        self._capacity = capacity
        self._arrived = 0
        self._allocated = 0
        self.points: list[float] = [0.0]

    def add(self, milli: int, allocated: int) -> None:
        self._arrived += milli
        while len(self.points) <= CURVE_POINTS and self._arrived * 100 >= len(self.points) * self._capacity:
            self.points.append(100.0 * allocated / self._capacity)
        self._allocated = allocated

    def at(self, percent: int) -> float | None:
        if percent < len(self.points):
            return round(self.points[percent], 4)
        if 100.0 * self._arrived / self._capacity >= percent - NEARLY:
            return round(100.0 * self._allocated / self._capacity, 4)
        return None


class _Tally:
    def __init__(self, counts_from: int) -> None:
        self._counts_from = counts_from
        self._offered = 0
        self._rejected = 0

    def count(self, arrived: int, milli: int, *, accepted: bool) -> None:
        if arrived >= self._counts_from:
            self._offered += milli
            self._rejected += 0 if accepted else milli

    def rejected_percent(self) -> float:
        return 100.0 * self._rejected / max(self._offered, 1)
