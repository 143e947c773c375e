"""What `make demo` shows: a cluster on this machine, and cards that are shared on it.

It starts the embedded engine, asks it for shares of cards as any user would (with the client beside this file), looks
on while the pods work, and leaves nothing behind.
"""

import os
import subprocess
import sys
import tempfile
import textwrap
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from kubernetes import client, watch

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE.parent / "client/python"))

from hami_client import HAMiClient, HAMiError, SchedulingInfo, connect  # noqa: E402

TESSERA = (sys.executable, "-m", "tessera.apps.cli")
CARDS = "2xA100-SXM4-80GB"
CARD_MIB = 81_920
HALF = CARD_MIB // 2
LITTLE = 8_000
CONTEXT_MIB = 1_000
"""What is left to the driver itself."""
NAMESPACE = "default"
IMAGE = "nvidia/cuda:12.6.0-base-ubuntu24.04"


def main() -> int:
    with tempfile.TemporaryDirectory(prefix="tessera-demo-") as directory:
        state = Path(directory) / "state"
        try:
            with running_engine(state) as kubeconfig:
                show(kubeconfig)
        except subprocess.CalledProcessError as failure:
            return end_early(f"`{' '.join(failure.cmd[2:])}` failed")
        except HAMiError as error:
            return end_early(str(error))
    say("What to try next")
    tessera = os.path.relpath(Path(sys.executable).parent / "tessera")
    for command, what in (
        (f"{tessera} up --detach", "a cluster of your own; it prints what to do with it"),
        (f"{tessera} nodes", "its cards, and who is on them"),
        (f"{tessera} simulate --cluster 1000x8 --policy all", "a larger one on paper, with every policy"),
        ("make test", "everything that proves it"),
    ):
        print(f"  {command:58} {what}")
    return 0


def end_early(why: str) -> int:
    print(f"the demo ended early: {why}", file=sys.stderr)
    return 1


@contextmanager
def running_engine(state: Path) -> Iterator[Path]:
    say("A cluster on this machine: two nodes, two cards each")
    command = [*TESSERA, "up", "--detach", f"--state-dir={state}", "--nodes=2", f"--cards={CARDS}"]
    started = subprocess.run(command, capture_output=True, text=True, check=False)
    print(f"  {started.stderr.partition(chr(10))[0]}")  # what it says next is for those who keep it
    started.check_returncode()
    try:
        yield state / "kubeconfig"
    finally:
        say("Everything is stopped and removed")
        subprocess.run([*TESSERA, "down", f"--state-dir={state}"], check=True, stderr=subprocess.DEVNULL)


def show(kubeconfig: Path) -> None:
    hami = HAMiClient(str(kubeconfig))
    core = client.CoreV1Api(client.ApiClient(connect(str(kubeconfig))))
    look(kubeconfig, "nodes")

    say("Two pods ask for half a card each, and share one")
    for name in ("one", "two"):
        hami.create_gpu_pod(name, NAMESPACE, IMAGE, gpu_memory_mb=HALF, command=working(HALF - CONTEXT_MIB))
    for name in ("one", "two"):
        tell_place(hami.wait_until_scheduled(name, NAMESPACE))
    look(kubeconfig, "nodes")

    say("One asks for more than any card has, and is told why it waits")
    hami.create_gpu_pod("greedy", NAMESPACE, IMAGE, gpu_memory_mb=2 * CARD_MIB, command=["sleep", "60"])
    print(
        textwrap.fill(
            hami.get_pod_scheduling_info("greedy", NAMESPACE)["problem"] or "",
            100,
            initial_indent="  ",
            subsequent_indent="  ",
        )
    )

    say("One takes more than its share")
    hami.create_gpu_pod("hungry", NAMESPACE, IMAGE, gpu_memory_mb=LITTLE, command=working(LITTLE + 2_000))
    hami.wait_until_scheduled("hungry", NAMESPACE)
    follow(core, "hungry")
    print(f"  Its share is {LITTLE} MiB with its context, and it got no more, though the card has plenty.")

    say("What the first two are doing, live")
    for name in ("one", "two"):
        follow(core, name)
    look(kubeconfig, "pods")
    for name in ("one", "two", "greedy", "hungry"):
        hami.delete_pod(name, NAMESPACE, grace_period_s=1)


def working(mib: int) -> list[str]:
    """A program that takes memory of its card and says so."""
    return [sys.executable, str(HERE / "taking_memory.py"), str(mib)]


def tell_place(info: SchedulingInfo) -> None:
    cards = ", ".join(f"{card['uuid']} ({card['memory_mb']} MiB of it)" for card in info["allocated_devices"])
    print(f"  {info['name']} is on {info['node']} and has {cards}")


def follow(core: client.CoreV1Api, name: str) -> None:
    """A pod's log as it is written, to its end."""
    wait_until_started(core, name)
    log = core.read_namespaced_pod_log(name, NAMESPACE, follow=True, _preload_content=False)
    for line in log:
        print(f"  {name}: {line.decode().rstrip()}", flush=True)
    log.release_conn()


def wait_until_started(core: client.CoreV1Api, name: str) -> None:
    events = watch.Watch()
    selector = f"metadata.name={name}"
    for event in events.stream(core.list_namespaced_pod, NAMESPACE, field_selector=selector, timeout_seconds=60):
        if event["object"].status.phase != "Pending":
            events.stop()


def look(kubeconfig: Path, at: str) -> None:
    print(f"\n$ tessera {at}", flush=True)
    subprocess.run([*TESSERA, at, f"--kubeconfig={kubeconfig}"], check=True)


def say(what: str) -> None:
    print(f"\n\033[1m{what}\033[0m" if sys.stdout.isatty() else f"\n{what}", flush=True)


if __name__ == "__main__":
    sys.exit(main())
