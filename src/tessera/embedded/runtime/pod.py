"""The life of one pod: its volumes, its init containers in their order, its containers, its end."""

import asyncio
import shutil
from collections.abc import Sequence
from contextlib import suppress
from datetime import UTC, datetime

from tessera.embedded.documents import Document, Frozen
from tessera.embedded.runtime.container import Container
from tessera.embedded.runtime.parts import listed, part
from tessera.embedded.runtime.sources import Event
from tessera.embedded.runtime.starting import write_hosts
from tessera.embedded.runtime.status import ENDED, Facts, is_done, pod_status, sidecar_names
from tessera.embedded.runtime.surroundings import Surroundings
from tessera.embedded.runtime.volumes import Volumes
from tessera.errors import TesseraError

GRACE_S = 30.0


class PodRun:
    """`run` goes on until nothing of the pod runs any more or ever will."""

    def __init__(self, around: Surroundings) -> None:
        self._around = around
        self._spec: Frozen = around.pod["spec"]
        told = part(around.pod, "status")
        self._told_conditions = _by_type(told)
        self._own_conditions: dict[str, Frozen] = {}
        self._had_ended = told.get("phase") in ENDED
        self._began_at = datetime.fromisoformat(told["startTime"]) if told.get("startTime") else datetime.now(UTC)
        self._volumes = Volumes(around.pod, around.directory / "volumes", around.machine.sources, around.place)
        policy: str = self._spec.get("restartPolicy", "Always")
        first_policy = "Never" if policy == "Never" else "OnFailure"
        self._sidecars = sidecar_names(self._spec)
        self._first = [
            self._container(spec, told, "Always" if spec["name"] in self._sidecars else first_policy)
            for spec in self._spec.get("initContainers") or ()
        ]
        self._others = [self._container(spec, told, policy) for spec in self._spec["containers"]]
        self._sandboxed = False
        self._stopping = asyncio.Event()
        self._stopper: asyncio.Task[None] | None = None
        self._stop_by_s = float("inf")
        self._failure: tuple[str, str] | None = None
        self._tasks: dict[str, asyncio.Task[None]] = {}
        self.is_over = asyncio.Event()

    @property
    def containers(self) -> Sequence[Container]:
        return (*self._first, *self._others)

    def container(self, name: str) -> Container | None:
        return next((container for container in self.containers if container.name == name), None)

    def status(self) -> Document:
        facts = Facts(
            place=self._around.place,
            began_at=self._began_at,
            now=datetime.now(UTC),
            sandboxed=self._sandboxed,
            is_final=self.is_over.is_set(),
            failure=self._failure,
            conditions=self._told_conditions | self._own_conditions,
        )
        status = pod_status(self._around.pod, [container.record for container in self.containers], facts)
        self._own_conditions = _by_type(status)
        return status

    def note(self, pod: Frozen) -> None:
        """What others have written to it since: conditions that are theirs."""
        self._told_conditions = _by_type(part(pod, "status"))

    async def run(self) -> None:
        if self._had_ended:
            self.is_over.set()
            return
        try:
            await self._live_to_the_end()
        except Exception:  # a mistake of ours; whoever deletes the pod must not wait for it
            self._be_over()
            raise
        self._be_over()

    async def _live_to_the_end(self) -> None:
        helpers = [asyncio.ensure_future(self._keep_deadline()), asyncio.ensure_future(self._refresh())]
        try:
            await self._live()
            if self._stopper is not None:
                await self._stopper
        finally:
            for helper in (*helpers, *self._tasks.values()):
                helper.cancel()
            await asyncio.gather(*helpers, *self._tasks.values(), return_exceptions=True)

    def _be_over(self) -> None:
        self.is_over.set()
        self._around.changed()

    def stop(self, grace_s: float) -> None:
        """Begin to end it. Asked again, the earlier end counts."""
        self._stopping.set()
        deadline_s = asyncio.get_running_loop().time() + grace_s
        if self._stopper is not None:
            if deadline_s >= self._stop_by_s:
                return
            self._stopper.cancel()
        self._stop_by_s = deadline_s
        self._stopper = asyncio.ensure_future(self._stop_all(grace_s))

    def remove(self) -> None:
        """Nothing of it is needed any more, also not its logs."""
        shutil.rmtree(self._around.directory, ignore_errors=True)

    def refresh_names(self) -> None:
        """The cluster has other names than before."""
        if self._sandboxed and not self.is_over.is_set():
            write_hosts(self._around)

    def _container(self, spec: Frozen, told: Frozen, policy: str) -> Container:
        statuses = [*listed(told, "initContainerStatuses"), *listed(told, "containerStatuses")]
        known = {status["name"]: status for status in statuses}
        return Container(self._around, self._volumes, spec, known.get(spec["name"]), policy)

    async def _live(self) -> None:
        if not await self._make_volumes():
            return
        for container in self._first:
            if container.name in self._sidecars:
                task = self._tasks[container.name] = asyncio.ensure_future(container.run())
                started = asyncio.ensure_future(container.has_started.wait())
                await asyncio.wait([task, started], return_when=asyncio.FIRST_COMPLETED)
                started.cancel()
                continue
            await container.run()
            if not is_done(container.record):
                break
        else:
            await self._run_others()
        await self._stop_sidecars(self._grace_s)

    async def _run_others(self) -> None:
        if not self._stopping.is_set():
            self._tasks |= {one.name: asyncio.ensure_future(one.run()) for one in self._others}
            await asyncio.gather(*(self._tasks[one.name] for one in self._others))

    async def _make_volumes(self) -> bool:
        """Again and again until it can be done. False, if the pod was stopped before."""
        while not self._stopping.is_set():
            try:
                self._around.directory.mkdir(parents=True, exist_ok=True)
                await self._volumes.make()
            except (TesseraError, OSError) as error:
                self._around.tell(Event("Warning", "FailedMount", f"MountVolume.SetUp failed: {error}"))
                with suppress(TimeoutError):
                    await asyncio.wait_for(self._stopping.wait(), self._around.machine.settings.retry_s)
                continue
            self._sandboxed = True
            self._around.changed()
            return True
        return False

    async def _refresh(self) -> None:
        """What volumes are made of changes, and tokens run out."""
        while self._volumes.can_change:
            await asyncio.sleep(self._around.machine.settings.refresh_s)
            with suppress(TesseraError, OSError):
                await self._volumes.make()

    async def _keep_deadline(self) -> None:
        limit_s: float | None = self._spec.get("activeDeadlineSeconds")
        if limit_s is None:
            return
        passed_s = (datetime.now(UTC) - self._began_at).total_seconds()
        await asyncio.sleep(max(0.0, limit_s - passed_s))
        self._failure = ("DeadlineExceeded", "Pod was active on the node longer than the specified deadline")
        self.stop(self._grace_s)

    async def _stop_all(self, grace_s: float) -> None:
        deadline_s = asyncio.get_running_loop().time() + grace_s
        first = [container for container in self._first if container.name not in self._sidecars]
        await asyncio.gather(*(container.stop(grace_s) for container in (*first, *self._others)))
        await self._stop_sidecars(max(0.0, deadline_s - asyncio.get_running_loop().time()))

    async def _stop_sidecars(self, grace_s: float) -> None:
        """The last to start is the first to stop."""
        for container in reversed([one for one in self._first if one.name in self._sidecars]):
            await container.stop(grace_s)

    @property
    def _grace_s(self) -> float:
        return float(self._spec.get("terminationGracePeriodSeconds", GRACE_S))


def _by_type(status: Frozen) -> dict[str, Frozen]:
    return {condition["type"]: condition for condition in listed(status, "conditions")}
