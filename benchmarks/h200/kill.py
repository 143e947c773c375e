"""SIGKILL at any moment: the next process starts, and the neighbour on the card keeps its share.

Start-up is swept in steps, several tries at once, each with a region of its own. Then one of two tenants that take
turns is killed again and again, while the other is watched.
"""

import os
import signal
import subprocess
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from .bench import Bench
from .memory import CAP_MIB
from .programs import build_micro, run_program
from .tables import Row, all_hold, is_near, percent
from .tenants import Tenant

TRIES, AT_ONCE = 200, 6
LAST_KILL_S = 0.6
HELD_MIB, NEXT_MIB = 2048, 7168
HUNG_S = 10.0
"""A start takes a quarter of a second; with some at once, one."""
SHARE = 50
VICTIMS = 8
LIVES_S = (0.3, 0.7, 0.45, 1.0)
LONGEST_GAP_MS = 250.0


@dataclass(frozen=True)
class Try:
    killed_after_s: float
    next_took_s: float
    trouble: str


def run(bench: Bench) -> list[Row]:
    rows = bench.attempt("start-up", lambda: measure_start_up(bench))
    return rows + bench.attempt("turns", lambda: measure_turns(bench))


def measure_start_up(bench: Bench) -> list[Row]:
    micro = build_micro(bench.scratch)
    tries = bench.times(TRIES)
    moments = [LAST_KILL_S * number / tries for number in range(tries)]
    with ThreadPoolExecutor(AT_ONCE) as several:
        outcomes = list(several.map(lambda at: kill_once(bench, micro, at), moments))
    troubles = [outcome for outcome in outcomes if outcome.trouble]
    slowest = max(outcome.next_took_s for outcome in outcomes)
    shown = [f"killed at {outcome.killed_after_s:.3f} s: {outcome.trouble}" for outcome in troubles]
    bench.note("start-up", {"tries": tries, "troubles": shown, "slowest_next_s": slowest})
    ours = f"{len(troubles)} of {tries}, the slowest next took {slowest:.1f} s"
    return [Row("killed while starting, the next hangs or is refused", "–", "11 of 24", ours, "0 of 200", not troubles)]


def kill_once(bench: Bench, micro: Path, after_s: float) -> Try:
    tenant = bench.tenant(f"killed-{after_s:.4f}")
    tenant.limit(SHARE, CAP_MIB)
    environment = tenant.environment()
    victim = subprocess.Popen([str(micro), "hold", str(HELD_MIB)], env=environment, stdout=subprocess.DEVNULL)
    time.sleep(after_s)
    victim.send_signal(signal.SIGKILL)
    victim.wait()
    began = time.monotonic()
    trouble = ""
    try:
        run_program([str(micro), "take", str(NEXT_MIB)], environment, HUNG_S)
    except OSError as failure:
        trouble = str(failure)
    return Try(after_s, time.monotonic() - began, trouble)


def measure_turns(bench: Bench) -> list[Row]:
    """Both at 50 %, by force: whatever becomes of one, the other has half of the card and no long gap."""
    survivor, victim = bench.tenant("turns", "survivor"), bench.tenant("turns", "victim")
    survivor.limit()
    victim.limit(SHARE)
    with bench.work("fma", survivor) as worker:
        worker.begin()
        alone = worker.ask(seconds=bench.seconds(1.5))["rate"]
        survivor.limit(SHARE)
        lives = [LIVES_S[number % len(LIVES_S)] for number in range(max(2, bench.times(VICTIMS)))]
        worker.tell(seconds=round(sum(lives) + 1.5 * len(lives), 1))
        killed = [live_and_die(bench, victim, life) for life in lives]
        watched = worker.hear(patience_s=120)
    share = watched["rate"] / alone
    bench.note("turns", {"share": share, "alone_rate": alone, "victims_ran_s": killed, **watched})
    evenly = watched["longest_ms"] <= LONGEST_GAP_MS
    ours = f"{percent(share)}, longest gap {watched['longest_ms']:.0f} ms, {len(killed)} killed"
    wanted = f"{SHARE} ± 2, no gap above {LONGEST_GAP_MS:.0f} ms"
    holds = all_hold(is_near(share, SHARE / 100, 2), evenly)
    return [Row("neighbour killed while both take turns", ours=ours, wanted=wanted, holds=holds)]


def live_and_die(bench: Bench, tenant: Tenant, life_s: float) -> float:
    with bench.work("fma", tenant) as victim:
        victim.begin()
        victim.tell(seconds=30.0)
        time.sleep(life_s)
        os.kill(victim.pid, signal.SIGKILL)
    return life_s
