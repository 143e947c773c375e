"""Makes what an MPIJob needs, and takes over nothing that is somebody else's.

Everything is looked for before it is made, so that a controller may die after any write and go on as if it had not.
"""

import asyncio
import secrets
from collections.abc import Sequence
from typing import Any

import structlog

from tessera.errors import AlreadyExists, Conflict, NotFound
from tessera.kube.client import Client, Deletion
from tessera.kube.kinds import CONFIG_MAPS, GPU_GANGS, PODS, SECRETS, SERVICES, Kind
from tessera.kube.objects import Document, ObjectKey
from tessera.model.mpi_hosts import HOSTS_FILE, TOKEN_FILE
from tessera.operators.mpi_board import Boards
from tessera.operators.mpi_children import make_config, make_gang, make_secret, make_service, token_in, wants_gang
from tessera.operators.mpi_objects import JOBS, MpiJob, part
from tessera.operators.mpi_pods import MPI_PODS, MpiPod
from tessera.operators.mpi_templates import MpiSettings, make_launcher, make_worker
from tessera.operators.mpi_watching import WatchedMpiJobs
from tessera.operators.owning import is_owned

log: structlog.stdlib.BoundLogger = structlog.get_logger(__name__)
TOKEN_BYTES = 32
MOST_AT_ONCE = 16


class ResourceExists(Exception):
    """Something of the name is there, and is not the job's."""

    def __init__(self, kind: Kind[Any], name: str) -> None:
        super().__init__(f'Resource "{name}" of Kind "{kind.name}" already exists and is not managed by MPIJob')


class MpiMaker:
    def __init__(self, client: Client, watched: WatchedMpiJobs, boards: Boards, settings: MpiSettings) -> None:
        self._client = client
        self._watched = watched
        self._boards = boards
        self._settings = settings

    async def make_surroundings(self, job: MpiJob) -> None:
        """What pods need to start, and to find each other. ResourceExists, if it cannot be had."""
        config = make_config(job, self._running_hosts(job))
        if not self._settings.shows_mounts:
            self._boards.post(job.uid, config["data"])
        await self._ensure(SERVICES, job, make_service(job))
        await self._keep(CONFIG_MAPS, await self._ensure(CONFIG_MAPS, job, config), "data", config["data"])
        secret = await self._ensure(SECRETS, job, make_secret(job, secrets.token_urlsafe(TOKEN_BYTES)))
        hosts = "".join(f"{name}\n" for name in job.worker_names)
        self._boards.post(job.uid, {TOKEN_FILE: token_in(secret), HOSTS_FILE: hosts})

    def _running_hosts(self, job: MpiJob) -> list[str]:
        """A launcher that was tried again has another pod, and the same host name."""
        hosts = [pod.name for pod in self._watched.pods_of(job.uid) if pod.status.phase == "Running"]
        launcher = self.launcher(job) if job.runs_launcher_as_worker else None
        attempts = self._watched.pods_of(launcher["metadata"]["uid"]) if launcher else []
        return [*hosts, *([job.launcher_name] if any(pod.status.phase == "Running" for pod in attempts) else ())]

    async def make_workers(self, job: MpiJob) -> list[str]:
        """Those that are missing; returns which. Those beyond the wanted number go, and those that an engine lost."""
        replica = job.spec.mpi_replica_specs.worker
        if replica is None:
            return []
        if wants_gang(job):
            gang = make_gang(job)
            await self._keep(GPU_GANGS, await self._ensure(GPU_GANGS, job, gang), "spec", gang["spec"])
        workers = self._watched.pods_of(job.uid)
        known = {pod.name for pod in workers}
        missing = [
            make_worker(job, replica, index, self._settings)
            for index, name in enumerate(job.worker_names)
            if name not in known
        ]
        for start in range(0, len(missing), MOST_AT_ONCE):
            batch = missing[start : start + MOST_AT_ONCE]
            await asyncio.gather(*(self._ensure(PODS, job, pod) for pod in batch))
        await self.remove([pod for pod in workers if pod.is_lost or pod.name not in job.worker_names])
        return [pod["metadata"]["name"] for pod in missing]

    async def make_launcher(self, job: MpiJob) -> Document | None:
        replica = job.spec.mpi_replica_specs.launcher
        if replica is None:
            return None
        is_name_free = await self._find(PODS, ObjectKey(job.namespace, job.launcher_name)) is None
        wanted = make_launcher(job, replica, self._settings, is_name_free=is_name_free)
        return await self._ensure(JOBS, job, wanted)

    def launcher(self, job: MpiJob) -> Document | None:
        """Its Job, if it is there. ResourceExists, if it is another's."""
        return self._known(JOBS, job, job.launcher_name)

    async def align(self, launcher: Document, *, suspend: bool) -> Document:
        """Let the launcher wait or go on as the MPIJob says."""
        if bool(launcher["spec"].get("suspend")) == suspend:
            return launcher
        metadata = launcher["metadata"]
        body = {"metadata": {"resourceVersion": metadata["resourceVersion"]}, "spec": {"suspend": suspend}}
        try:
            return await self._client.patch(JOBS, metadata["name"], body, namespace=metadata["namespace"])
        except (Conflict, NotFound):  # it has changed, and that will be told
            return launcher

    async def remove(self, pods: Sequence[MpiPod]) -> None:
        for pod in pods:
            if pod.is_going:
                continue
            try:
                how = Deletion(uid=pod.metadata.uid or "")
                await self._client.delete(MPI_PODS, pod.name, namespace=pod.metadata.namespace or "", how=how)
            except (Conflict, NotFound):
                continue

    async def remove_gang(self, job: MpiJob) -> None:
        gang = self._watched.child(GPU_GANGS, job.key)
        if gang is None or not is_owned(gang, job):
            return
        try:
            await self._client.delete(GPU_GANGS, job.name, namespace=job.namespace)
        except NotFound:
            return

    async def _ensure(self, kind: Kind[Document], job: MpiJob, wanted: Document) -> Document:
        name: str = wanted["metadata"]["name"]
        known = self._known(kind, job, name) if kind is not PODS else None
        if known is not None:
            return known
        try:
            made = await self._client.create(kind, wanted, namespace=job.namespace)
        except AlreadyExists:
            found = await self._find(kind, ObjectKey(job.namespace, name))
            if found is None or not is_owned(found, job):
                raise ResourceExists(kind, name) from None
            return found
        log.info("made for an MPIJob", job=str(job.key), kind=kind.name, name=name)
        return made

    def _known(self, kind: Kind[Document], job: MpiJob, name: str) -> Document | None:
        found = self._watched.child(kind, ObjectKey(job.namespace, name))
        if found is not None and not is_owned(found, job):
            raise ResourceExists(kind, name)
        return found

    async def _keep(self, kind: Kind[Document], found: Document, name: str, wanted: Document) -> None:
        """Let the part of this name be as it is wanted: how many workers there are may change."""
        if {**part(found, name), **wanted} == found.get(name):
            return
        metadata = found["metadata"]
        body = {"metadata": {"resourceVersion": metadata["resourceVersion"]}, name: wanted}
        try:
            await self._client.patch(kind, metadata["name"], body, namespace=metadata["namespace"])
        except (Conflict, NotFound):  # it has changed, and that will be told
            return

    async def _find(self, kind: Kind[Document], key: ObjectKey) -> Document | None:
        try:
            return await self._client.get(kind, key.name, namespace=key.namespace)
        except NotFound:
            return None
