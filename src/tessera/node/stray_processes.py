"""Stray processes: those that the driver lists on a card and that no region accounts for.

Their memory is in nobody's limit: a program on the node itself, one in a container that was given no such card, or one
that our library was kept out of. Nothing is done to them; people are told, once for each.

A container may write any number into its region, and would hide a stray of others by naming it. So who is named counts
only if it has that region mapped, by the kernel's word.
"""

import asyncio
import re
from collections.abc import Callable, Collection, Mapping
from functools import cache
from pathlib import Path
from typing import NamedTuple

import msgspec
import structlog

from tessera.errors import DiscoveryFailed
from tessera.kube.event_series import ObjectReference
from tessera.kube.events import Recorder
from tessera.kube.timing import SYSTEM_CLOCK, Clock
from tessera.node.mapped_files import mapped_files, names_of_files
from tessera.node.using import ContainerUses
from tessera.vendors.usage import CardProcess

log: structlog.stdlib.BoundLogger = structlog.get_logger(__name__)
LOOK_AGAIN_S = 10.0
MIB = 2**20
_POD = re.compile(r"pod([0-9a-f]{8}[_-][0-9a-f]{4}[_-][0-9a-f]{4}[_-][0-9a-f]{4}[_-][0-9a-f]{12})")

Listed = Mapping[str, Collection[CardProcess]]
PodOf = Callable[[int], str | None]
FilesOf = Callable[[int], frozenset[str] | None]


class StrayProcess(msgspec.Struct, frozen=True, kw_only=True):
    """`pod_uid` is that of the pod it is in, empty for a process of the node itself."""

    uuid: str
    pid: int
    memory_bytes: int
    pod_uid: str = ""


class Account(NamedTuple):
    """A container's region, the processes that it names by their numbers on the node, and whether it has others.

    `region` is what the kernel calls it, None where that is not known.
    """

    pod_uid: str
    region: str | None
    named: frozenset[int]
    has_nameless: bool


def find_stray_processes(
    listed: Listed, accounts: Collection[Account], pod_of: PodOf, files_of: FilesOf
) -> tuple[StrayProcess, ...]:
    """`pod_of` says in which pod a process is, `files_of` what it has mapped; both are None of one that is not seen."""
    files_of = cache(files_of)
    return tuple(
        StrayProcess(uuid=uuid, pid=process.pid, memory_bytes=process.memory_bytes, pod_uid=pod)
        for uuid, processes in listed.items()
        for process in processes
        if (pod := pod_of(process.pid)) is not None
        and not any(_accounts_for(account, process.pid, pod, files_of) for account in accounts)
    )


def _accounts_for(account: Account, pid: int, pod: str, files_of: FilesOf) -> bool:
    """Where the kernel does not tell, the region is believed of processes in its own pod, and of those that it names
    also where they are in none that can be told, as those of static pods are.
    """
    is_named = pid in account.named
    if not is_named and not account.has_nameless:
        return False
    files = files_of(pid) if account.region else None
    if files is not None:
        return account.region in files
    return pod == account.pod_uid or (is_named and pod == "")


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
        pod_of: PodOf = pod_of_process,
        files_of: FilesOf = mapped_files,
        clock: Clock = SYSTEM_CLOCK,
    ) -> None:
        self._listed = listed
        self._uses = uses
        self._tell = tell
        self._pod_of = pod_of
        self._files_of = files_of
        self._clock = clock
        self._suspects: frozenset[tuple[str, int]] = frozenset()
        self.strays: tuple[StrayProcess, ...] = ()

    async def run(self) -> None:
        while True:
            await self._clock.sleep(LOOK_AGAIN_S)
            try:
                self.judge(await asyncio.to_thread(self.find))
            except DiscoveryFailed:
                self.strays = ()

    def find(self) -> tuple[StrayProcess, ...]:
        """Whoever is one at this moment."""
        listed = self._listed()
        if not any(listed.values()):
            return ()
        everybody = self._uses.processes
        names = names_of_files(map(self._uses.region_of, everybody))
        accounts = [
            Account(
                pod_uid=holder.pod.uid,
                region=names.get(self._uses.region_of(holder)),
                named=frozenset(process.host_pid for process in processes if process.host_pid),
                has_nameless=any(not process.host_pid for process in processes),
            )
            for holder, processes in everybody.items()
        ]
        return find_stray_processes(listed, accounts, self._pod_of, self._files_of)

    def judge(self, found: Collection[StrayProcess]) -> None:
        """Who is found for the first time may only not have been in its region yet when that was read."""
        known = {(stray.uuid, stray.pid) for stray in self.strays}
        self.strays = tuple(stray for stray in found if (stray.uuid, stray.pid) in self._suspects)
        self._suspects = frozenset((stray.uuid, stray.pid) for stray in found)
        for stray in self.strays:
            if (stray.uuid, stray.pid) not in known:
                log.warning("stray process", uuid=stray.uuid, pid=stray.pid, pod_uid=stray.pod_uid)
                self._tell(stray)


def tell_by_events(recorder: Recorder, node: str, node_uid: Callable[[], str]) -> Callable[[StrayProcess], None]:
    """On the Node, whose uid is empty for as long as it is not known."""

    def tell(stray: StrayProcess) -> None:
        about = ObjectReference(kind="Node", name=node, uid=node_uid())
        recorder.warning(about, "StrayProcess", explain_stray(stray))

    return tell


def explain_stray(stray: StrayProcess) -> str:
    whose = f"of the pod with UID {stray.pod_uid}" if stray.pod_uid else "of no pod"
    return (
        f"process {stray.pid} {whose} has {stray.memory_bytes // MIB} MiB of {stray.uuid} and is in no container's"
        " account, so no limit holds it; end it, or see why the library is not in it"
    )
