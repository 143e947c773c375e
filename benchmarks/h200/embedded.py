"""The embedded engine with the real card: `tessera up`, two pods with shares of it, both held.

Needs `tessera` and what it depends on in this Python. Memory is looked at while both hold all they can get, compute
while both work; what the kernel does in a second without a library is measured first.
"""

import asyncio
import json
import os
import subprocess
import sys
import time
from pathlib import Path
from string import Template
from typing import Any

from .bench import Bench
from .memory import settled_mib
from .tables import Row, all_hold, figure, is_near, percent
from .workers import ROOT, together

MANIFEST = Path(__file__).with_name("pods.yaml")
SHARES = {"quarter": (25, 8192), "half": (50, 16384)}
FILLED_S, SWAPPED_S, WORK_S = 12.0, 4.0, 4.0
"""After the pods are made: until both hold all they can get, until they work, and how long."""
LONGEST_S = 60.0
DRIVER = ("LD_LIBRARY_PATH", "TESSERA_SIM")
"""What the machine may need to find its driver; a real pod would have it from the container runtime."""
USABLE = 0.85
"""Of a cap, with a context taken off and blocks of 64 MiB."""


def run(bench: Bench) -> list[Row]:
    return bench.attempt("two pods", lambda: measure(bench))


def measure(bench: Bench) -> list[Row]:
    with bench.work("fma", None) as worker:
        worker.begin()
        native = together([worker], bench.seconds(1.5))[0]["rate"]
    before = settled_mib(bench)
    state = bench.scratch / "state"
    command = [sys.executable, "-m", "tessera.apps.cli"]
    subprocess.run([*command, "up", "--detach", "--state-dir", str(state)], check=True, cwd=ROOT)
    try:
        found = asyncio.run(host(bench, state / "kubeconfig", before))
    finally:
        subprocess.run([*command, "down", "--state-dir", str(state)], check=False, cwd=ROOT)
    bench.note("two pods", {"native": native, **found})
    return rows_of(native, found)


async def host(bench: Bench, kubeconfig: Path, before: float) -> dict[str, Any]:
    from tessera.kube.access import find_access
    from tessera.kube.client import Client
    from tessera.kube.kinds import PODS

    now = time.monotonic()
    hold_until = now + FILLED_S + 1
    async with Client(find_access(kubeconfig)) as client:
        for pod in manifest(hold_until, now + FILLED_S + SWAPPED_S, WORK_S):
            await client.create(PODS, pod, namespace="default")
        await asyncio.sleep(max(0.0, now + FILLED_S - time.monotonic()))
        true_use = bench.card.used_mib() - before
        async with asyncio.timeout(LONGEST_S):
            while not all(phase in ("Succeeded", "Failed") for phase in (await phases(client)).values()):
                await asyncio.sleep(0.5)
        logs = {name: await log_of(client, name) for name in SHARES}
        return {"true_use_mib": true_use, "phases": await phases(client), "pods": logs}


def manifest(hold_until: float, work_from: float, seconds: float) -> list[dict[str, Any]]:
    import yaml

    paths = {"PYTHONPATH": os.pathsep.join([str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])])}
    paths |= {name: os.environ[name] for name in DRIVER if name in os.environ}
    words = {
        "command": [sys.executable, "-m", f"{__package__}.guest", str(hold_until), str(work_from), str(seconds)],
        "directory": str(ROOT),
        "environment": [{"name": name, "value": value} for name, value in paths.items()],
    }
    text = Template(MANIFEST.read_text()).substitute({word: json.dumps(value) for word, value in words.items()})
    return yaml.safe_load(text)["items"]


async def phases(client: Any) -> dict[str, str]:
    from tessera.kube.kinds import PODS

    pods = [await client.get(PODS, name, namespace="default") for name in SHARES]
    return {pod["metadata"]["name"]: pod.get("status", {}).get("phase", "") for pod in pods}


async def log_of(client: Any, name: str) -> dict[str, Any]:
    from tessera.kube.requests import Request

    path = f"/api/v1/namespaces/default/pods/{name}/log"
    lines = (await client.send(Request(verb="get", path=path, target=f"log of {name}"))).decode().splitlines()
    answers = [line for line in lines if line.startswith("{")]
    return json.loads(answers[-1]) if answers else {"failed": "\n".join(lines[-8:])}


def rows_of(native: float, found: dict[str, Any]) -> list[Row]:
    rows: list[Row] = []
    for name, (cores, memory_mib) in SHARES.items():
        pod = found["pods"][name]
        share = pod["rate"] / native if "rate" in pod else None
        taken = pod.get("taken_mib")
        ours = f"{percent(share)} (cv {figure(pod.get('variation'))}), took {figure(taken, 0)} MiB"
        held = None if taken is None else USABLE * memory_mib <= taken <= memory_mib
        holds = all_hold(is_near(share, cores / 100, 2), held) if share is not None else False
        wanted = f"{cores} ± 2, memory filled and never above"
        rows.append(Row(f"pod {name}: {cores} %, {memory_mib} MiB", ours=ours, wanted=wanted, holds=holds))
    cap = sum(memory_mib for _, memory_mib in SHARES.values())
    holds = found["true_use_mib"] <= cap
    ours = f"{found['true_use_mib']:.0f} MiB"
    return [*rows, Row("true use of both pods together", ours=ours, wanted=f"≤ {cap} MiB", holds=holds)]
