"""The runtime: all pods of a machine, and an end for what a former engine left behind."""

import asyncio
import os
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from pathlib import Path

import msgspec
import structlog

from tessera.embedded.documents import Document, Frozen
from tessera.embedded.runtime.addresses import NODE_ADDRESS, Addresses
from tessera.embedded.runtime.cgroups import Cgroups
from tessera.embedded.runtime.container import Container
from tessera.embedded.runtime.environment import PASSED_ON
from tessera.embedded.runtime.exec import Session, open_session
from tessera.embedded.runtime.fields import Place
from tessera.embedded.runtime.images import Images
from tessera.embedded.runtime.leftovers import kill_marked, pod_of_marked, runtime_name
from tessera.embedded.runtime.logs import LogRequest, read_log
from tessera.embedded.runtime.namespaces import Shown
from tessera.embedded.runtime.parts import part
from tessera.embedded.runtime.pod import PodRun
from tessera.embedded.runtime.process import Launch, Process
from tessera.embedded.runtime.sources import Event, Names, Prepare, Sources, add_nothing
from tessera.embedded.runtime.surroundings import Machine, Settings, Surroundings
from tessera.errors import StartRefused

log: structlog.stdlib.BoundLogger = structlog.get_logger(__name__)
UNUSED_PATH = "/.tessera-mount-check"
IMAGES = "images.toml"
"""In the runtime's directory: the user's own table of images."""


class Wiring(msgspec.Struct, frozen=True, kw_only=True):
    """What the app connects the runtime to. `variables` tell every container where the API server is."""

    sources: Sources
    changed: Callable[[str], None]
    hear: Callable[[Frozen, Event], None]
    prepare: Prepare = add_nothing
    names: Names = lambda _: ()
    variables: Mapping[str, str] = {}


class Runtime:
    """Made by `open`. A pod is known by its uid."""

    def __init__(self, directory: Path, machine: Machine, wiring: Wiring) -> None:
        self._directory = directory
        self._machine = machine
        self._wiring = wiring
        self._addresses = Addresses(machine.name)
        self._pods: dict[str, PodRun] = {}
        self._tasks: dict[str, asyncio.Task[None]] = {}

    @classmethod
    async def open(cls, directory: Path, wiring: Wiring, *, settings: Settings | None = None) -> "Runtime":
        """One engine at a time may have the directory: whatever still runs of it is a former one's, and is ended."""
        name = runtime_name(directory)
        (directory / "pods").mkdir(mode=0o700, exist_ok=True)  # Secrets lie there
        cgroups = Cgroups.find(name)
        ended = kill_marked(f"{name}/")
        if ended:
            log.info("processes of a former engine ended", count=ended)
        passed_on = {key: os.environ[key] for key in PASSED_ON if key in os.environ}
        machine = Machine(
            name=name,
            images=Images.load(directory / IMAGES),
            sources=wiring.sources,
            prepare=wiring.prepare,
            cgroups=cgroups,
            names=wiring.names,
            variables={**passed_on, **wiring.variables},
            shows_mounts=await _can_show_mounts(directory, name),
            settings=settings or Settings(),
        )
        log.info("runtime open", mounts=machine.shows_mounts, memory_limits=cgroups.limits_memory)
        return cls(directory, machine, wiring)

    @property
    def limits_memory(self) -> bool:
        return self._machine.cgroups.limits_memory

    @property
    def shows_mounts(self) -> bool:
        return self._machine.shows_mounts

    def take_address(self, owner: str) -> str:
        """Out of the same network as those of pods, for what is beside them."""
        return self._addresses.take(owner)

    def pod_of(self, pid: int) -> str | None:
        """The uid of the pod that a process is of, "" for one of no pod; None where that cannot be seen."""
        return pod_of_marked(pid, self._machine.name)

    def start(self, pod: Frozen) -> None:
        """A pod that is bound to a node of this machine. One that is known already goes on as it is."""
        uid: str = pod["metadata"]["uid"]
        if uid in self._pods:
            self._pods[uid].note(pod)
            return
        around = Surroundings(
            machine=self._machine,
            pod=pod,
            place=self._place(pod),
            directory=self._directory / "pods" / uid,
            tell=lambda event: self._wiring.hear(pod, event),
            changed=lambda: self._wiring.changed(uid),
        )
        run = self._pods[uid] = PodRun(around)
        task = self._tasks[uid] = asyncio.ensure_future(run.run())
        task.add_done_callback(_note_mistake)

    def stop(self, uid: str, grace_s: float) -> None:
        self._pods[uid].stop(grace_s)

    def status(self, uid: str) -> Document | None:
        """None for a pod that is not known."""
        return self._pods[uid].status() if uid in self._pods else None

    def is_over(self, uid: str) -> bool:
        """Whether nothing of it runs any more, or ever will."""
        return uid not in self._pods or self._pods[uid].is_over.is_set()

    async def remove(self, uid: str) -> None:
        """Its object is gone: end what is left of it, and forget it."""
        run, task = self._pods.pop(uid, None), self._tasks.pop(uid, None)
        if run is None or task is None:
            return
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        run.remove()
        self._addresses.give_back(uid)

    def container(self, uid: str, name: str) -> Container | None:
        run = self._pods.get(uid)
        return run.container(name) if run else None

    def read_log(
        self, container: Container, request: LogRequest, *, previous: bool = False, follow: bool = False
    ) -> AsyncIterator[bytes]:
        """Followed, it ends with the container's present run."""
        return read_log(container.log_path(previous=previous), request, container.run_over if follow else None)

    async def exec(
        self, container: Container, command: Sequence[str], *, stdin: bool = False, terminal: bool = False
    ) -> Session:
        """StartRefused, if the container does not run or has no such program."""
        return await open_session(container.exec_launch(command), stdin=stdin, terminal=terminal)

    def refresh_names(self) -> None:
        for run in self._pods.values():
            run.refresh_names()

    async def close(self) -> None:
        """End every process. Nothing is told of it: to the next engine the containers are lost, and restart."""
        tasks = list(self._tasks.values())
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        self._machine.cgroups.remove()

    def _place(self, pod: Frozen) -> Place:
        address = self._addresses.take(pod["metadata"]["uid"], part(pod, "status").get("podIP", ""))
        return Place(
            node=pod["spec"].get("nodeName", ""),
            host_address=NODE_ADDRESS,
            pod_address=address,
            cpu_milli=1000 * (os.cpu_count() or 1),
            memory_bytes=os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"),
        )


def _note_mistake(task: asyncio.Task[None]) -> None:
    if not task.cancelled() and (error := task.exception()) is not None:
        log.error("pod left alone after a mistake of the runtime", exc_info=error)


async def _can_show_mounts(directory: Path, name: str) -> bool:
    """Found out by doing it: what forbids it has many names."""
    spare = directory / "mount-check"
    spare.mkdir(parents=True, exist_ok=True)
    launch = Launch(
        argv=["/bin/sh", "-c", f"test -d {UNUSED_PATH}"],
        environment={},
        directory="/",
        mark=f"{name}/mount-check",
        mounts=[Shown(str(directory), UNUSED_PATH)],
        spare=str(spare),
        log=str(directory / "mount-check.log"),
    )
    try:
        process = await Process.start(launch)
    except StartRefused as error:
        log.warning("volumes cannot be mounted on this machine", error=str(error))
        return False
    return (await process.wait()).code == 0
