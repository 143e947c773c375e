"""An MPIJob whose methods are awaited: for programs with an event loop, which none of them holds up."""

import builtins
from collections.abc import Awaitable
from typing import Any, Callable, Literal, Optional, TypeVar, Union, overload

from . import jobs, operations
from .description import JobDescription
from .evidence import Explanation
from .ranks import Ranks
from .threads import LineStream, in_thread

Self = TypeVar("Self", bound="AsyncMPIJob")


class AsyncMPIJob(JobDescription):
    """The same as `MPIJob`, and each method that talks to the cluster is awaited. Who cancels one stops what it
    does.
    """

    async def create(self: Self, *, dry_run: bool = False) -> Self:
        """As `MPIJob.create`."""
        await in_thread(lambda: operations.create(self, dry_run))
        return self

    async def get_status(self) -> str:
        """As `MPIJob.get_status`."""
        return (await in_thread(lambda: operations.get_status(self))).value

    async def wait_for_completion(
        self,
        timeout: float = 3600,
        poll_interval: float = 5,
        *,
        callback: Optional[Callable[[str], None]] = None,
        progress: bool = False,
    ) -> str:
        """As `MPIJob.wait_for_completion`. The callback is called in another thread."""
        done = await in_thread(lambda: operations.wait_for_completion(self, timeout, poll_interval, callback, progress))
        return done.value

    @overload
    def get_logs(
        self, worker_index: Optional[int] = None, follow: Literal[False] = False, tail_lines: Optional[int] = 1000
    ) -> Awaitable[str]: ...
    @overload
    def get_logs(
        self, worker_index: Optional[int] = None, *, follow: Literal[True], tail_lines: Optional[int] = 1000
    ) -> LineStream: ...
    @overload
    def get_logs(
        self, worker_index: Optional[int], follow: Literal[True], tail_lines: Optional[int] = 1000
    ) -> LineStream: ...
    @overload
    def get_logs(
        self, worker_index: Optional[int] = None, follow: bool = False, tail_lines: Optional[int] = 1000
    ) -> Union[Awaitable[str], LineStream]: ...
    def get_logs(
        self, worker_index: Optional[int] = None, follow: bool = False, tail_lines: Optional[int] = 1000
    ) -> Union[Awaitable[str], LineStream]:
        """As `MPIJob.get_logs`: awaited for the text, and with `follow` for `async for`."""
        if follow:
            operations.check_log_request(self, worker_index, tail_lines)
            return LineStream(lambda: operations.follow_logs(self, worker_index, tail_lines))
        return in_thread(lambda: operations.get_logs(self, worker_index, tail_lines))

    async def delete(self) -> None:
        """As `MPIJob.delete`."""
        await in_thread(lambda: jobs.delete(self.namespace, self.name))

    @classmethod
    async def get(cls: "type[Self]", name: str, namespace: str = "default") -> Self:
        """As `MPIJob.get`."""
        return cls._from_document(await in_thread(lambda: jobs.get(namespace, name)))

    async def get_worker_statuses(self) -> "builtins.list[dict[str, Any]]":
        """As `MPIJob.get_worker_statuses`."""
        return await in_thread(lambda: operations.get_worker_statuses(self))

    async def get_metrics(
        self,
        *,
        prometheus_url: Optional[str] = None,
        token: Optional[str] = None,
        ca_file: Optional[str] = None,
        window: str = "5m",
    ) -> dict[str, Any]:
        """As `MPIJob.get_metrics`."""
        return await in_thread(lambda: operations.get_metrics(self, prometheus_url, token, ca_file, window))

    async def explain(self) -> Explanation:
        """As `MPIJob.explain`."""
        return await in_thread(lambda: operations.explain_job(self))

    async def where_ranks_ran(self) -> Ranks:
        """As `MPIJob.where_ranks_ran`."""
        return await in_thread(lambda: operations.where_ranks_ran(self))

    async def suspend(self: Self) -> Self:
        """As `MPIJob.suspend`."""
        await in_thread(lambda: operations.set_suspended(self, True))
        return self

    async def resume(self: Self) -> Self:
        """As `MPIJob.resume`."""
        await in_thread(lambda: operations.set_suspended(self, False))
        return self

    # The last, because from here on `list` in this class is this.
    @classmethod
    async def list(
        cls: "type[Self]", namespace: str = "default", label_selector: Optional[str] = None
    ) -> "builtins.list[Self]":
        """As `MPIJob.list`."""
        documents = await in_thread(lambda: jobs.list_all(namespace, label_selector))
        return [cls._from_document(one) for one in documents]
