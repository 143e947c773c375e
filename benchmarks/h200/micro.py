"""What single calls cost with the library and without, in interleaved runs of which the fastest counts.

The machine's processors have two speeds, half apart; only the fastest runs of each kind can be compared. What a launch
costs more is below that noise on a real driver, so it is also measured over one that does nothing.
"""

from typing import Any

from .bench import Bench
from .programs import build_micro, run_program
from .tables import Row
from .tenants import Tenant, native_environment
from .workers import Worker

TURNS = 8
TORCH_TURNS = 4
MOST_INIT_MS = 10
CAP_PERCENT, CAP_MIB = 99, 64 << 10
STUB_CARD = "GPU-00000000-0000-0000-0000-000000000001"
Environments = dict[str, dict[str, str]]


def run(bench: Bench) -> list[Row]:
    micro = str(build_micro(bench.scratch))
    rows = bench.attempt("launch on the stub", lambda: measure_stub(bench, micro))
    rows += bench.attempt("launch", lambda: measure_launch(bench, micro))
    rows += bench.attempt("alloc", lambda: measure_alloc(bench, micro))
    rows += bench.attempt("init", lambda: measure_init(bench, micro))
    return rows + bench.attempt("torch", lambda: measure_torch(bench))


def environments(bench: Bench, group: str, card: str | None = None) -> Environments:
    free, capped = bench.tenant(group, "free"), bench.tenant(group, "capped")
    if card:
        free, capped = (Tenant(tenant.name, tenant.directory, tenant.library, card) for tenant in (free, capped))
    free.limit()
    capped.limit(CAP_PERCENT, CAP_MIB)
    return {"native": native_environment(), "uncapped": free.environment(), "capped": capped.environment()}


def fastest(bench: Bench, command: list[str], kinds: Environments, turns: int = TURNS) -> dict[str, dict[str, float]]:
    """By kind and figure, the least of all turns."""
    seen: dict[str, list[dict[str, Any]]] = {kind: [] for kind in kinds}
    for _ in range(max(2, bench.times(turns))):
        for kind, environment in kinds.items():
            seen[kind].append(run_program(command, environment))
    return {kind: {name: min(run[name] for run in runs) for name in runs[0]} for kind, runs in seen.items()}


def measure_stub(bench: Bench, micro: str) -> list[Row]:
    stub = str(bench.library.parent / "probe/stub")
    kinds = environments(bench, "stub", STUB_CARD)
    kinds = {kind: environment | {"LD_LIBRARY_PATH": stub} for kind, environment in kinds.items()}
    found = fastest(bench, [micro, "launch"], kinds)
    bench.note("launch on the stub", found)
    bare = found["native"]["enqueued_ns"]
    return [
        Row(
            f"launch, added, {kind} (stub driver)", f"{bare:.1f} ns", hami_core,
            f"+{found[kind]['enqueued_ns'] - bare:.1f} ns", f"< {most} ns",
            found[kind]["enqueued_ns"] - bare < most,
        )
        for kind, hami_core, most in (("uncapped", "+20 ns", 10), ("capped", "+24 … 27 ns", 100))
    ]  # fmt: skip


def measure_launch(bench: Bench, micro: str) -> list[Row]:
    found = fastest(bench, [micro, "launch"], environments(bench, "launch"))
    bench.note("launch", found)
    names = {"rejected_ns": "rejected launch (grid 0)", "enqueued_ns": "cuLaunchKernel, enqueued"}
    recorded = {"rejected_ns": "1005 ns (native 1021)", "enqueued_ns": "3023 ns (native 3264)"}
    return [
        Row(
            text, f"{found['native'][name]:.0f} ns", recorded[name],
            f"{found['uncapped'][name]:.0f} ns, capped {found['capped'][name]:.0f} ns",
        )
        for name, text in names.items()
    ]  # fmt: skip


def measure_alloc(bench: Bench, micro: str) -> list[Row]:
    kinds = environments(bench, "alloc")
    found = fastest(bench, [micro, "alloc"], {kind: kinds[kind] for kind in ("native", "capped")})
    bench.note("alloc", found)
    names = {"pair_ns": "1 MiB alloc and free, 4,000 live blocks", "async_pair_ns": "cuMemAllocAsync and free, 1 MiB"}
    recorded = {"pair_ns": "44,761 ns (native 1,994)", "async_pair_ns": "1,511 ns (native 705)"}
    rows: list[Row] = []
    for name, text in names.items():
        native, ours = found["native"][name], found["capped"][name]
        shown = f"{ours:.0f} ns, {ours / native:.2f} times"
        is_wanted = name == "pair_ns"
        holds = ours <= 1.2 * native if is_wanted else None
        rows.append(Row(text, f"{native:.0f} ns", recorded[name], shown, "≤ 1.2 times" if is_wanted else "", holds))
    return rows


def measure_init(bench: Bench, micro: str) -> list[Row]:
    """Of the first context too, so that nothing is called cheap that was only put off."""
    found = fastest(bench, [micro, "init"], environments(bench, "init"))
    bench.note("init", found)
    added = {name: found["capped"][name] - found["native"][name] for name in found["native"]}
    native = {name: f"{taken:.1f} ms" for name, taken in found["native"].items()}
    init, context = f"{added['init_ms']:+.1f} ms", f"{added['context_ms']:+.1f} ms"
    return [
        Row("cuInit, added", native["init_ms"], "+157 ms", init, "≤ 10 ms", added["init_ms"] <= MOST_INIT_MS),
        Row("first context, added", native["context_ms"], "-14 ms", context),
    ]


def measure_torch(bench: Bench) -> list[Row]:
    """From a loaded PyTorch to the first tensor. All are loaded first, and take turns then."""
    kinds = environments(bench, "torch")
    turns = max(2, bench.times(TORCH_TURNS))
    takers = [(kind, Worker("takers", [], kinds[kind])) for _ in range(turns) for kind in ("native", "capped")]
    seen: dict[str, list[float]] = {"native": [], "capped": []}
    for kind, taker in takers:
        with taker:
            seen[kind].append(taker.begin()["set_up_s"] * 1e3)
    bench.note("torch", seen)
    native, ours = min(seen["native"]), min(seen["capped"])
    return [Row("PyTorch's first tensor", f"{native:.0f} ms", "460 ms (native 340)", f"{ours:.0f} ms")]
