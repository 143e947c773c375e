"""How often /filter is asked while nothing can be placed: a thousand nodes that handshake, a thousand hopeless pods.

A handshake changes a Node, and a changed Node wakes every pod that an extender refused. So agents handshake within one
second of the clock every four minutes. kube-scheduler then tries each pod again; that it tries no pod twice in a window
would be the floor. Between windows nothing has changed, and nobody should ask.
"""

import argparse
import asyncio
import os
import sys
import time
from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple

import structlog

from benchmarks.scheduling import Scheduling, quiet_cluster
from tessera.kube.access import find_access
from tessera.kube.client import Client
from tessera.kube.kinds import PODS
from tessera.kube.objects import Document
from testbed.agents import HANDSHAKE_EVERY_S
from testbed.creating import create_all

WANTED_BETWEEN, WANTED_OVERALL = 1.0, 10.0
WINDOW_S = 60
"""How long after the handshakes kube-scheduler may take to try every pod once."""
LOOK_EVERY_S = 1.0
AT_REST_S = 300


class Look(NamedTuple):
    """What was counted so far, at which time of the clock."""

    at_s: float
    attempts: float

    @property
    def is_in_window(self) -> bool:
        return self.at_s % HANDSHAKE_EVERY_S < WINDOW_S


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--nodes", type=int, default=1_000)
    parser.add_argument("--pods", type=int, default=1_000)
    parser.add_argument("--for-s", type=int, default=600)
    asked = parser.parse_args()
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(40))
    with quiet_cluster(simulated_nodes=asked.nodes) as cluster:
        scheduling = Scheduling(cluster)
        scheduling.start_extender()
        scheduling.start_scheduler(scheduling.with_extender())
        asyncio.run(create_pods(scheduling, asked.pods))
        wait_until_at_rest(scheduling, asked.pods)
        before = scheduling.filter_calls()
        looks = watch(scheduling, asked.for_s)
        calls = scheduling.filter_calls() - before
    report(looks, calls, asked.pods)


async def create_pods(scheduling: Scheduling, count: int) -> None:
    async with Client(find_access(scheduling.cluster.kubeconfig)) as client:
        await create_all(client, PODS, map(a_hopeless_pod, range(count)), namespace="default")


def a_hopeless_pod(number: int) -> Document:
    limits = {"nvidia.com/gpu": "1", "nvidia.com/gpumem": "900000"}
    return {
        "metadata": {"name": f"hopeless-{number:05}"},
        "spec": {
            "schedulerName": "hami-scheduler",
            "containers": [{"name": "main", "image": "x", "resources": {"limits": limits}}],
        },
    }


def wait_until_at_rest(scheduling: Scheduling, pods: int) -> None:
    """Until kube-scheduler has found a place for none of them and tries none any more."""
    deadline = time.monotonic() + AT_REST_S
    while scheduling.queued("unschedulable") < pods:
        if time.monotonic() > deadline:
            queues = {queue: scheduling.queued(queue) for queue in ("active", "backoff", "unschedulable")}
            sys.exit(f"idle: kube-scheduler was not at rest after {AT_REST_S} s, its queues are {queues}")
        time.sleep(LOOK_EVERY_S)


def watch(scheduling: Scheduling, for_s: float) -> list[Look]:
    looks = [Look(time.time(), scheduling.attempts())]
    while looks[-1].at_s < looks[0].at_s + for_s:
        time.sleep(LOOK_EVERY_S)
        looks.append(Look(time.time(), scheduling.attempts()))
        if os.isatty(1):
            print(f"\r  {looks[-1].at_s - looks[0].at_s:5.0f} s", end="\r", flush=True)
    return looks


def report(looks: Sequence[Look], calls: float, pods: int) -> None:
    steps = list(pairwise(looks))
    quiet = [(one, other) for one, other in steps if not one.is_in_window and not other.is_in_window]
    quiet_s = sum(other.at_s - one.at_s for one, other in quiet)
    between = sum(other.attempts - one.attempts for one, other in quiet) / max(quiet_s, 1e-9)
    overall_s = looks[-1].at_s - looks[0].at_s
    busy = [other for one, other in steps if other.attempts > one.attempts and other.is_in_window]
    windows = {int(look.at_s // HANDSHAKE_EVERY_S) for look in busy}
    lasted_s = max((look.at_s % HANDSHAKE_EVERY_S for look in busy), default=0.0)
    print(f"{pods} hopeless pods for {overall_s:.0f} s, {len(windows)} windows           calls a second")
    for what, figure in (
        (f"/filter between windows (< {WANTED_BETWEEN:g})", between),
        (f"/filter overall (< {WANTED_OVERALL:g})", calls / overall_s),
        ("floor: each pod tried once in each window", pods * len(windows) / overall_s),
    ):
        print(f"  {what:48} {figure:8.2f}")
    print(f"  kube-scheduler was at rest {lasted_s:.0f} s after the handshakes began, {calls:.0f} calls in all")


if __name__ == "__main__":
    main()
