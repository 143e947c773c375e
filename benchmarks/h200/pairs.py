"""Two tenants on one card: does each get its share, is the card used up, and who pays when they are unlike?

Shares are of what each did alone in the same process. A power-bound load that rests runs faster afterwards, so beside a
light neighbour its hard cap is read against its own speed under the same cap alone.
"""

import mmap
import time
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from statistics import fmean
from tempfile import NamedTemporaryFile
from typing import Any

from .bench import Bench
from .tables import Row, all_hold, figure, is_near, percent
from .tenants import Tenant
from .windows import went_on_for
from .workers import START_IN_S, Worker

PHASE_S, ALONE_S = 2.5, 1.2
TURNS = 8
HEAVY = (("fma", "fma"), ("matmul", "matmul"))
UNLIKE = (("matmul", "small"), ("matmul", "train"), ("fma", "small"))
SHARES = ((50, 50), (25, 75), (25, 25))
POWER_BOUND = "matmul"
"""Where the card rests its throughput says nothing of its time."""
USED_UP = 0.97
STRICT, CONSERVING = "force", "default"
NOISE = 0.05
"""What CPU-bound loads vary by from phase to phase on this machine, at the least."""
BURSTS, BURST_S = 5, 0.6
STOPPED_WITHIN_S = 0.05
MEETINGS = 40
SHARED_MEMORY = "/dev/shm"
"""A card's driver pins no pages of files elsewhere."""


@dataclass(frozen=True)
class Pair:
    bench: Bench
    name: str
    tenants: tuple[Tenant, Tenant]
    workers: tuple[Worker, Worker]

    def begin(self) -> "Pair":
        for worker in self.workers:
            worker.begin()
        return self

    def end(self) -> None:
        for worker in self.workers:
            worker.kill()

    def run(self, what: str, who: str = "both", seconds: float = PHASE_S) -> list[dict[str, Any]]:
        """One phase; of whoever is idle the rate is 0."""
        busy = [place for place in (0, 1) if who in ("both", "AB"[place])]
        starts_at = time.monotonic() + START_IN_S
        for place in busy:
            self.workers[place].tell(seconds=self.bench.seconds(seconds), starts_at=starts_at)
        answers = [self.workers[place].hear() if place in busy else {"rate": 0.0} for place in (0, 1)]
        self.bench.note(f"{self.name}, {what}", {"A": answers[0], "B": answers[1]})
        return answers

    def limit(self, shares: tuple[int, int], policy: str = STRICT) -> None:
        for tenant, share in zip(self.tenants, shares, strict=True):
            tenant.limit(share, policy=policy)

    def alone(self) -> tuple[float, float]:
        a, _ = self.run("A alone", "A", ALONE_S)
        _, b = self.run("B alone", "B", ALONE_S)
        return a["rate"], b["rate"]


def make_pair(bench: Bench, stack: ExitStack, loads: tuple[str, str], is_ours: bool, group: str = "shares") -> Pair:
    """Started and waiting: PyTorch takes seconds to load, and the card is touched when `begin` is called."""
    name = "+".join(loads)
    tenants = bench.tenant(f"{group}-{name}", "a"), bench.tenant(f"{group}-{name}", "b")
    for tenant in tenants:
        tenant.limit()
    a, b = (
        stack.enter_context(bench.work(load, tenant if is_ours else None))
        for load, tenant in zip(loads, tenants, strict=True)
    )
    return Pair(bench, name if is_ours else f"{name} native", tenants, (a, b))


def run(bench: Bench) -> list[Row]:
    rows: list[Row] = []
    with ExitStack() as stack:
        casts = {
            loads: (make_pair(bench, stack, loads, is_ours=False), make_pair(bench, stack, loads, is_ours=True))
            for loads in (*HEAVY, *UNLIKE)
            if bench.is_asked("+".join(loads))
        }
        for loads, (plain, two) in casts.items():
            measure = measure_heavy if loads in HEAVY else measure_unlike
            rows += bench.attempt("+".join(loads), partial(measure, plain, two))
            plain.end()
            two.end()
    rows += bench.attempt("priority", lambda: measure_priority(bench))
    return rows + bench.attempt("ranks", lambda: measure_ranks(bench))


def shares_of(answers: list[dict[str, Any]], alone: tuple[float, float]) -> tuple[float, float]:
    a, b = (answer["rate"] / rate for answer, rate in zip(answers, alone, strict=True))
    return a, b


def text_of(shares: tuple[float, float], answers: list[dict[str, Any]]) -> str:
    uneven = "/".join(figure(answer.get("variation")) for answer in answers)
    return f"{shares[0] * 100:.1f} + {shares[1] * 100:.1f} = {sum(shares) * 100:.1f} % (cv {uneven})"


def slice_time(plain: Pair) -> tuple[float, float]:
    """What each gets when nothing stands before them and the card alternates by itself."""
    shares = shares_of(plain.begin().run("both"), plain.alone())
    plain.end()
    return shares


def measure_heavy(plain: Pair, two: Pair) -> list[Row]:
    before = slice_time(plain)
    sliced = f"{before[0] * 100:.1f} + {before[1] * 100:.1f} %, time-sliced"
    alone = two.begin().alone()
    answers = two.run("both without a cap")
    rows = [Row(f"{two.name}, no caps", native=sliced, ours=text_of(shares_of(answers, alone), answers))]
    for wanted in SHARES:
        if POWER_BOUND in two.name and sum(wanted) < 100:
            continue
        two.limit(wanted)
        rows.append(
            row_of_shares(f"{two.name}, {wanted[0]} + {wanted[1]}", two.run(f"{wanted}"), alone, wanted, sliced)
        )
    return rows + measure_idle(two, alone[0])


def row_of_shares(
    what: str, answers: list[dict[str, Any]], alone: tuple[float, float], wanted: tuple[int, int], native: str
) -> Row:
    found = shares_of(answers, alone)
    verdicts = [is_near(share, cap / 100, 2) for share, cap in zip(found, wanted, strict=True)]
    text = f"{wanted[0]} ± 2, {wanted[1]} ± 2"
    if sum(wanted) == 100:
        verdicts.append(sum(found) >= USED_UP)
        text += ", sum ≥ 97"
    hami_core = "45.9 + 46.0 %, as uncapped" if what == "matmul+matmul, 50 + 50" else "–"
    return Row(what, native, hami_core, text_of(found, answers), text, all_hold(*verdicts))


def measure_idle(two: Pair, alone: float) -> list[Row]:
    """The other tenant is there, and has nothing to do."""
    rows: list[Row] = []
    for policy, wanted in ((STRICT, "50 ± 2"), (CONSERVING, "≥ 99")):
        if POWER_BOUND in two.name and policy == STRICT:
            continue
        two.limit((50, 50), policy)
        share = two.run(f"A at 50 by {policy}, B idle", "A")[0]["rate"] / alone
        holds = is_near(share, 0.5, 2) if policy == STRICT else share >= 0.99
        rows.append(Row(f"{two.name}, 50 + idle, {policy}", ours=percent(share), wanted=wanted, holds=holds))
    return rows


def measure_unlike(plain: Pair, two: Pair) -> list[Row]:
    """With the library and without take turns, because the processors' speed changes from phase to phase."""
    plain.begin()
    two.begin().limit((50, 50), CONSERVING)
    alone, turns = plain.alone(), range(two.bench.times(TURNS))
    sliced, conserving = zip(
        *((plain.run("both", seconds=ALONE_S), two.run("50 + 50 by default", seconds=ALONE_S)) for _ in turns),
        strict=True,
    )
    plain.end()
    two.limit((50, 50))
    halved = two.run("A alone at 50", "A", ALONE_S)[0]["rate"]
    strict = two.run("50 + 50 by force")
    before, shares = (mean_shares(each, alone) for each in (sliced, conserving))
    native = f"{before[0] * 100:.1f} + {before[1] * 100:.1f} %, time-sliced"
    as_time = strict[0]["rate"] / halved * 0.5 if halved else None
    kept = all(share >= unaided - NOISE for share, unaided in zip(shares, before, strict=True))
    return [
        Row(
            f"{two.name}, work-conserving", native, "–", text_of(shares, conserving[-1]), "not below time-sliced", kept
        ),
        Row(
            f"{two.name}, 50 + 50 hard", native, "–",
            f"{text_of(shares_of(strict, alone), strict)}; A has {percent(as_time)} of the time",
            "A 50 ± 5 of the time", is_near(as_time, 0.5, 5),
        ),
    ]  # fmt: skip


def mean_shares(turns: Sequence[list[dict[str, Any]]], alone: tuple[float, float]) -> tuple[float, float]:
    a, b = zip(*(shares_of(answers, alone) for answers in turns), strict=True)
    return fmean(a), fmean(b)


def measure_priority(bench: Bench) -> list[Row]:
    """How long the low tenant goes on submitting after the high one has begun, burst after burst."""
    with ExitStack() as stack:
        two = make_pair(bench, stack, ("fma", "fma"), is_ours=True, group="priority").begin()
        low, high = two.workers
        two.tenants[0].limit(priority=1)
        two.tenants[1].limit(priority=0)
        first_at = time.monotonic() + 1.0
        begins = [first_at + 2 * BURST_S * burst for burst in range(BURSTS)]
        low.tell(seconds=1.0 + 2 * BURST_S * BURSTS, is_traced=True)
        for begin in begins:
            high.tell(seconds=BURST_S, starts_at=begin, warm_up_s=0.0)
        answers = [high.hear() for _ in begins]
        submitted = low.hear()["submitted"]
    until = [answer["ends_at"] - STOPPED_WITHIN_S for answer in answers]
    pauses = [went_on_for(submitted, *burst) for burst in zip(begins, until, strict=True)]
    known = [pause for pause in pauses if pause is not None]
    bench.note("priority", {"low_went_on_s": pauses, "high_rates": [answer["rate"] for answer in answers]})
    worst = f"{max(known) * 1e3:.0f} ms at worst" if known else "never"
    ours = f"{worst}, running before {len(known)} of {BURSTS} bursts"
    holds = len(known) == BURSTS and max(known) <= STOPPED_WITHIN_S
    return [Row("low priority beside high, its last submission after", ours=ours, wanted="≤ 50 ms", holds=holds)]


def measure_ranks(bench: Bench) -> list[Row]:
    """Kernels that wait for each other, by two processes of one container, and by two containers at 50 + 50."""
    native = meet(bench, "native", (None, None))
    one, a, b = bench.tenant("ranks-one"), bench.tenant("ranks-two", "a"), bench.tenant("ranks-two", "b")
    for tenant in (one, a, b):
        tenant.limit(50)
    within, across = meet(bench, "one container", (one, one)), meet(bench, "two containers", (a, b))
    return [
        Row(
            f"{bench.times(MEETINGS)} kernels that wait for those of another process, {what}",
            native=f"{native['met']} met, {native['seconds']:.1f} s",
            ours=f"{found['met']} met, {found['seconds']:.1f} s",
            wanted="all meet",
            holds=found["met"] == bench.times(MEETINGS),
        )
        for what, found in (("one container at 50 %", within), ("two containers at 50 % each", across))
    ]


def meet(bench: Bench, name: str, tenants: tuple[Tenant | None, Tenant | None]) -> dict[str, Any]:
    with ExitStack() as stack:
        place = stack.enter_context(NamedTemporaryFile(dir=SHARED_MEMORY))
        place.write(bytes(mmap.PAGESIZE))
        place.flush()
        ranks = [
            stack.enter_context(bench.work("ranks", tenant, place.name, str(rank)))
            for rank, tenant in enumerate(tenants)
        ]
        for rank in ranks:
            rank.begin()
        for rank in ranks:
            rank.tell(times=bench.times(MEETINGS))
        answers = [rank.hear() for rank in ranks]
    finding = {"met": min(answer["met"] for answer in answers), "seconds": max(answer["seconds"] for answer in answers)}
    bench.note(f"ranks, {name}", finding)
    return finding
