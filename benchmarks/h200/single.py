"""One tenant alone on the card: does a share of GPU time hold, and does one that is above the demand cost anything?

Each capped phase stands between two uncapped ones of the same process, because the machine's processors change their
speed by a half within minutes; CPU-bound loads take turns with and without. Profiles come last: PyTorch's profiler
slows launches from its first use on.
"""

from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from statistics import fmean
from typing import Any

from .bench import Bench
from .tables import Row, all_hold, figure, is_near, percent
from .tenants import Tenant
from .workers import Worker, together

CAPPED_S, FREE_S, PROFILED_S = 1.8, 0.8, 1.4
TURNS, TURN_S = 4, 0.5
CAPS = (25, 50, 75)
TIGHT_CAPS = (5, 10)
WHOLE = 100
GPU_BOUND = ("fma", "matmul", "graph", "mixed", "streams", "copies")
CPU_BOUND = ("small", "train")
POWER_BOUND = ("matmul", "graph")
HAMI_CORE = {
    ("matmul", 25): "throughput 99.5 % (cv 0.011)", ("matmul", 50): "throughput 99.5 % (cv 0.011)",
    ("matmul", 75): "throughput 99.7 % (cv 0.013)", ("graph", 25): "throughput 100.0 % (cv 0.019)",
    ("small", 25): "87.3 % of native, stalls to 568 ms", ("small", 50): "97.2 %", ("small", 75): "104.5 %",
    ("train", 50): "no slowdown seen",
}  # fmt: skip
EVEN, UNHARMED = 0.05, 0.95
Phase = dict[str, Any]


@dataclass(frozen=True)
class Capped:
    """One load under one cap, by every observer there is."""

    load: str
    cap: int
    throughput: float
    """Of what the same process did just before and after, without a cap."""
    throughput_variation: float | None
    longest_ms: float | None
    copied_gb_s: list[float] | None
    busy: float | None
    busy_variation: float | None
    nvml: float | None


def run(bench: Bench) -> list[Row]:
    rows: list[Row] = []
    with ExitStack() as stack:
        casts = {load: cast(bench, stack, load) for load in (*GPU_BOUND, *CPU_BOUND) if bench.is_asked(load)}
        for load, players in casts.items():
            rows += bench.attempt(load, partial(measure_load, bench, load, players))
            players.without.kill()
            players.under.kill()
    return rows + bench.attempt("processes", lambda: measure_processes(bench))


@dataclass(frozen=True)
class Cast:
    tenant: Tenant
    without: Worker
    under: Worker


def cast(bench: Bench, stack: ExitStack, load: str) -> Cast:
    """All are started at once, because PyTorch takes seconds to load; they touch the card when their turn comes."""
    tenant = bench.tenant(load)
    tenant.limit()
    without, under = bench.work(load, None), bench.work(load, tenant, "--profiled")
    return Cast(tenant, stack.enter_context(without), stack.enter_context(under))


def measure_load(bench: Bench, load: str, players: Cast) -> list[Row]:
    tenant, worker = players.tenant, players.under
    native = measure_native(bench, players.without, load)
    worker.begin()
    caps = (*CAPS, *TIGHT_CAPS) if load in CPU_BOUND else CAPS
    free, phases = measure_caps(bench, [worker], tenant, load, (WHOLE, *caps))
    found = {cap: profile(bench, worker, tenant, load, cap) for cap in (0, *caps)}
    rows = [row_of_whole(load, native, free, phases[WHOLE], found[0])]
    return rows + [row_of(capped(load, cap, phases[cap], found[cap])) for cap in caps]


def measure_native(bench: Bench, worker: Worker, load: str) -> Phase:
    """In a process that the library is not in; it ends before the other begins to work."""
    worker.begin()
    phase = observed(bench, together([worker], bench.seconds(FREE_S))[0])
    worker.kill()
    bench.note(f"{load} native", phase)
    return phase


def measure_caps(
    bench: Bench, workers: list[Worker], tenant: Tenant, load: str, caps: tuple[int, ...]
) -> tuple[float, dict[int, Phase]]:
    """The mean rate without a cap, and the phase of each cap, with the rate of its two neighbours without one."""
    free = [phase_at(bench, workers, tenant, load, 0)["rate"]]
    phases: dict[int, Phase] = {}
    for cap in caps:
        if load in CPU_BOUND and cap in CAPS:
            phases[cap] = take_turns(bench, workers, tenant, load, cap)
            continue
        phases[cap] = phase_at(bench, workers, tenant, load, cap)
        free.append(phase_at(bench, workers, tenant, load, 0)["rate"])
        phases[cap]["free_rate"] = fmean(free[-2:])
    return fmean(free), phases


def take_turns(bench: Bench, workers: list[Worker], tenant: Tenant, load: str, cap: int) -> Phase:
    """The processors' changing speed does more to a phase than a cap above the demand does, so the mean of several."""
    turns = [
        (phase_at(bench, workers, tenant, load, cap, TURN_S), phase_at(bench, workers, tenant, load, 0, TURN_S))
        for _ in range(TURNS)
    ]
    rate, free_rate = (fmean(phase["rate"] for phase in phases) for phases in zip(*turns, strict=True))
    return turns[-1][0] | {"rate": rate, "free_rate": free_rate}


def phase_at(
    bench: Bench, workers: list[Worker], tenant: Tenant, load: str, cap: int, seconds: float | None = None
) -> Phase:
    tenant.limit(cap)
    answers = together(workers, bench.seconds(seconds or (CAPPED_S if cap else FREE_S)))
    phase = observed(bench, answers[0]) | {"rate": sum(answer["rate"] for answer in answers)}
    bench.note(f"{load} at {cap or 'no cap'}", phase)
    return phase


def observed(bench: Bench, answer: dict[str, Any]) -> dict[str, Any]:
    seen = bench.card.between(answer["begins_at"], answer["ends_at"])
    return answer | {"nvml": seen["utilisation"] if seen else None, "card": seen}


def profile(bench: Bench, worker: Worker, tenant: Tenant, load: str, cap: int) -> dict[str, Any] | None:
    tenant.limit(cap)
    busy = together([worker], bench.seconds(PROFILED_S), is_profiled=True)[0]["busy"]
    bench.note(f"{load} at {cap or 'no cap'}, profile", {"busy": busy})
    return busy


def share_of(busy: dict[str, Any] | None) -> float | None:
    return busy["share"] if busy else None


def capped(load: str, cap: int, phase: Phase, busy: dict[str, Any] | None) -> Capped:
    return Capped(
        load,
        cap,
        throughput=phase["rate"] / phase["free_rate"],
        throughput_variation=phase["variation"],
        longest_ms=phase.get("longest_ms"),
        copied_gb_s=phase.get("copied_gb_s"),
        busy=share_of(busy),
        busy_variation=busy["variation"] if busy else None,
        nvml=phase["nvml"],
    )


def row_of_whole(load: str, native: Phase, free: float, whole: Phase, busy: dict[str, Any] | None) -> Row:
    ours = (
        f"no limit: busy {percent(share_of(busy))}, throughput {percent(free / native['rate'])} of native; "
        f"at 100 %: {percent(whole['rate'] / whole['free_rate'])} of no limit"
    )
    shown = f"{native['rate']:.0f} a second, NVML {figure(native['nvml'], 0)}{copies_of(native.get('copied_gb_s'))}"
    return Row(f"{load}, uncapped", native=shown, ours=ours + copies_of(whole.get("copied_gb_s")))


def copies_of(copied_gb_s: list[float] | None) -> str:
    return f", copies {copied_gb_s[0]:.1f} + {copied_gb_s[1]:.1f} GB/s" if copied_gb_s else ""


def row_of(found: Capped) -> Row:
    ours = (
        f"busy {percent(found.busy)} (cv {figure(found.busy_variation)}), throughput {percent(found.throughput)} "
        f"(cv {figure(found.throughput_variation)}, longest gap {figure(found.longest_ms, 1)} ms), "
        f"NVML {figure(found.nvml, 0)}{copies_of(found.copied_gb_s)}"
    )
    wanted, holds = judge(found)
    hami_core = HAMI_CORE.get((found.load, found.cap), "–")
    return Row(f"{found.load} at {found.cap} %", hami_core=hami_core, ours=ours, wanted=wanted, holds=holds)


def judge(found: Capped) -> tuple[str, bool | None]:
    """GPU-bound loads by CUPTI; by throughput where nothing profiles and power does not bind. CPU-bound ones by their
    speed, and where the cap is below their demand by NVML, because what a tiny kernel costs is not its own time but the
    card's front end's."""
    if found.load in CPU_BOUND and found.cap not in TIGHT_CAPS:
        return "≥ 95 % of native throughput", found.throughput >= UNHARMED
    if found.load in CPU_BOUND:
        nvml = None if found.nvml is None else found.nvml / 100
        return f"{found.cap} ± 3 by NVML", is_near(nvml, found.cap / 100, 3)
    is_clocked = found.load not in POWER_BOUND
    share = found.busy if found.busy is not None or not is_clocked else found.throughput
    uneven = found.busy_variation if found.busy is not None else found.throughput_variation
    evenly = None if uneven is None else uneven <= EVEN
    return f"{found.cap} ± 2, cv ≤ {EVEN}", all_hold(is_near(share, found.cap / 100, 2), evenly)


def measure_processes(bench: Bench) -> list[Row]:
    """Two processes of one container have one share between them, of what they do together without a cap."""
    tenant = bench.tenant("processes")
    tenant.limit()
    with bench.work("fma", tenant) as one, bench.work("fma", tenant) as other:
        one.begin()
        alone = phase_at(bench, [one], tenant, "one of two processes", 0)["rate"]
        other.begin()
        free, phases = measure_caps(bench, [one, other], tenant, "two processes", CAPS)
    rows = [Row("fma, two processes of one tenant", ours=f"no limit: together {percent(free / alone)} of one alone")]
    for cap in CAPS:
        share = phases[cap]["rate"] / free
        ours = f"together {percent(share)}, NVML {figure(phases[cap]['nvml'], 0)}"
        holds = is_near(share, cap / 100, 2)
        rows.append(Row(f"fma, two processes of one tenant at {cap} %", ours=ours, wanted=f"{cap} ± 2", holds=holds))
    return rows
