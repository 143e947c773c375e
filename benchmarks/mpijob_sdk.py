"""The MPIJob SDK on the embedded engine: what each call costs beside the bare client's, and how late a followed line
comes.

The bare client is the official one, held for the whole run, with the requests that a program would have to send for the
same answer and nothing judged or checked. The launcher writes the time into each line; it is compared with the time at
which the line is in the reader's hands. Floor for that, in the same run: the bare client's own stream of the same log.
"""

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from statistics import median, quantiles
from typing import Any

from kubernetes import client, config

from openshift_ai_sdk.training import MPIJob

TESSERA = (sys.executable, "-m", "tessera.apps.cli")
ROUNDS = 100
LINES, EVERY_S = 50, 0.1
WANTED_MS = 200
KIND = {"group": "kubeflow.org", "version": "v2beta1", "namespace": "default", "plural": "mpijobs"}
LABELS = "training.kubeflow.org/job-name=bench"
SCRIPT = f"for i in $(seq {LINES}); do date +%s.%N; sleep {EVERY_S}; done; sleep 600"


def main() -> None:
    with engine():
        print(f"one call, {ROUNDS} times                        SDK ms (p50, p99)   bare client ms (p50, p99)")
        job = MPIJob("bench", image="any", command=["sh", "-c", SCRIPT]).create()
        for name, ours, bare in calls(job):
            print(f"  {name:<38} {shown(ours)}   {shown(bare)}")
        job.delete()
        print(f"a followed line, {LINES} lines                  ms (p50, worst)")
        report("the SDK, from before its pod is there", ours_followed("followed"))
        report("floor: the bare client, from its start", bare_followed("floor"))


@contextmanager
def engine() -> Iterator[None]:
    with tempfile.TemporaryDirectory() as directory:
        state = Path(directory) / "state"
        subprocess.run([*TESSERA, "up", "--detach", f"--state-dir={state}"], check=True, capture_output=True)
        os.environ["KUBECONFIG"] = str(state / "kubeconfig")
        untyped: Any = config
        untyped.load_kube_config(str(state / "kubeconfig"))
        try:
            yield
        finally:
            subprocess.run([*TESSERA, "down", f"--state-dir={state}"], check=True, capture_output=True)


def calls(job: MPIJob) -> Iterator[tuple[str, Callable[[], object], Callable[[], object]]]:
    custom: Any = client.CustomObjectsApi()
    core: Any = client.CoreV1Api()
    body = job.to_dict()
    yield (
        "create, dry run (with its quota preflight)",
        lambda: MPIJob("bench-dry", image="any").create(dry_run=True),
        lambda: custom.create_namespaced_custom_object(
            **KIND, body={**body, "metadata": {"name": "bench-dry"}}, dry_run="All"
        ),
    )
    yield "get_status", job.get_status, lambda: custom.get_namespaced_custom_object(**KIND, name="bench")
    yield "get", lambda: MPIJob.get("bench"), lambda: custom.get_namespaced_custom_object(**KIND, name="bench")
    yield "list", MPIJob.list, lambda: custom.list_namespaced_custom_object(**KIND)
    pods = core.list_namespaced_pod
    yield "get_worker_statuses", job.get_worker_statuses, lambda: pods("default", label_selector=LABELS)
    wait_for_log(job)
    launcher = next(pod.metadata.name for pod in pods("default").items if "launcher" in pod.metadata.name)
    yield "get_logs", job.get_logs, lambda: core.read_namespaced_pod_log(launcher, "default")


def wait_for_log(job: MPIJob) -> None:
    next(iter(job.get_logs(follow=True)))


def shown(call: Callable[[], object]) -> str:
    call()
    times_ms = [seconds_of(call) * 1000 for _ in range(ROUNDS)]
    return f"{median(times_ms):8.2f} {quantiles(times_ms, n=100)[98]:8.2f}"


def seconds_of(call: Callable[[], object]) -> float:
    began = time.perf_counter()
    call()
    return time.perf_counter() - began


def ours_followed(name: str) -> list[float]:
    job = MPIJob(name, image="any", command=["sh", "-c", SCRIPT]).create()
    delays = delays_of(job.get_logs(follow=True, tail_lines=None))
    job.delete()
    return delays


def bare_followed(name: str) -> list[float]:
    job = MPIJob(name, image="any", command=["sh", "-c", SCRIPT]).create()
    wait_for_log(job)
    core: Any = client.CoreV1Api()
    stream = core.read_namespaced_pod_log(
        f"{name}-launcher", "default", follow=True, since_seconds=1, _preload_content=False
    )
    delays = delays_of((line.decode() for line in pieces(stream)), LINES - 5)
    stream.close()
    job.delete()
    return delays[5:]


def pieces(stream: Any) -> Iterator[bytes]:
    for piece in stream.stream(1 << 16):
        yield from piece.splitlines()


def delays_of(lines: Iterable[str], count: int = LINES) -> list[float]:
    delays: list[float] = []
    for line in lines:
        delays.append((time.time() - float(line)) * 1000)
        if len(delays) == count:
            break
    return delays


def report(what: str, delays_ms: list[float]) -> None:
    print(f"  {what:<38} {median(delays_ms):8.1f} {max(delays_ms):8.1f} (<= {WANTED_MS})")


if __name__ == "__main__":
    main()
