"""Stray processes: those that the driver lists on a card and that no region accounts for.

Their memory is in nobody's limit: a program on the node itself, one in a container that was given no such card, or one
that our library was kept out of. Nothing is done to them; people are told, once for each.
"""

import asyncio
import re
from collections.abc import Callable, Collection, Mapping
from pathlib import Path

import msgspec
import structlog

from tessera.errors import DiscoveryFailed
from tessera.kube.timing import SYSTEM_CLOCK, Clock
from tessera.node.using import ContainerUses
from tessera.vendors.usage import CardProcess

log: structlog.stdlib.BoundLogger = structlog.get_logger(__name__)
LOOK_AGAIN_S = 10.0
MIB = 2**20
_POD = re.compile(r"pod([0-9a-f]{8}[_-][0-9a-f]{4}[_-][0-9a-f]{4}[_-][0-9a-f]{4}[_-][0-9a-f]{12})")

Listed = Mapping[str, Collection[CardProcess]]


class StrayProcess(msgspec.Struct, frozen=True, kw_only=True):
    """`pod_uid` is that of the pod it is in, empty for a process of the node itself."""

    uuid: str
    pid: int
    memory_bytes: int
    pod_uid: str = ""


def find_stray_processes(
    listed: Listed, named: Collection[int], unnamed: Collection[str], pod_of: Callable[[int], str | None]
) -> tuple[StrayProcess, ...]:
    """`named` are the processes that regions know by their numbers on the node, `unnamed` the pods with processes in a
    region that do not know theirs. `pod_of` says in which pod a process is, None of one that cannot be seen.
    """
    return tuple(
        StrayProcess(uuid=uuid, pid=process.pid, memory_bytes=process.memory_bytes, pod_uid=pod)
        for uuid, processes in listed.items()
        for process in processes
        if process.pid not in named and (pod := pod_of(process.pid)) is not None and pod not in unnamed
    )


def pod_of_process(pid: int, proc: Path = Path("/proc")) -> str | None:
    """By its control group, which either driver of the kubelet names after the pod."""
    try:
        groups = (proc / str(pid) / "cgroup").read_text()
    except OSError:
        return None
    found = _POD.search(groups)
    return found[1].replace("_", "-") if found else ""


class StrayProcesses:
    """`listed` asks the driver, and may block. `tell` is called once for each stray."""

    def __init__(
        self,
        listed: Callable[[], Listed],
        uses: ContainerUses,
        *,
        tell: Callable[[StrayProcess], None] = lambda _: None,
        pod_of: Callable[[int], str | None] = pod_of_process,
        clock: Clock = SYSTEM_CLOCK,
    ) -> None:
        self._listed = listed
        self._uses = uses
        self._tell = tell
        self._pod_of = pod_of
        self._clock = clock
        self._suspects: frozenset[tuple[str, int]] = frozenset()
        self.strays: tuple[StrayProcess, ...] = ()

    async def run(self) -> None:
        while True:
            await self._clock.sleep(LOOK_AGAIN_S)
            try:
                self.judge(await asyncio.to_thread(self._listed))
            except DiscoveryFailed:
                self.strays = ()

    def judge(self, listed: Listed) -> None:
        """Who is found for the first time may only not have been in its region yet when that was read."""
        everybody = self._uses.processes
        named = {process.host_pid for processes in everybody.values() for process in processes}
        unnamed = {holder.pod.uid for holder, some in everybody.items() if any(not one.host_pid for one in some)}
        found = find_stray_processes(listed, named, unnamed, self._pod_of)
        known = {(stray.uuid, stray.pid) for stray in self.strays}
        self.strays = tuple(stray for stray in found if (stray.uuid, stray.pid) in self._suspects)
        self._suspects = frozenset((stray.uuid, stray.pid) for stray in found)
        for stray in self.strays:
            if (stray.uuid, stray.pid) not in known:
                log.warning("stray process", uuid=stray.uuid, pid=stray.pid, pod_uid=stray.pod_uid)
                self._tell(stray)


def explain_stray(stray: StrayProcess) -> str:
    whose = f"of the pod with UID {stray.pod_uid}" if stray.pod_uid else "of no pod"
    return (
        f"process {stray.pid} {whose} has {stray.memory_bytes // MIB} MiB of {stray.uuid} and is in no container's"
        " account, so no limit holds it; end it, or see why the library is not in it"
    )
