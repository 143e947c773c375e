"""A Compute: a tensor server in the cluster, made, waited for, talked to and removed by one object."""

import asyncio
import warnings
from collections.abc import Awaitable, Callable, Coroutine, Mapping, Sequence
from types import TracebackType
from typing import Any, Self, TypeVar

from kubernetes import client

from kpu.client.benchmark import Benchmark, measure
from kpu.client.cluster import current_cluster
from kpu.client.computes import Computes
from kpu.client.deadlines import Deadline
from kpu.client.deleting import DEFAULT_GRACE_S, check_grace, delete_and_wait
from kpu.client.intent import INTENT, Intent, check_host, check_port, check_suspend
from kpu.client.line import Line
from kpu.client.models import KpuV1alpha1Compute
from kpu.client.tensor_client import TensorClient
from kpu.client.threads import arrival, in_thread, is_in_event_loop, posted, start, wait_for
from kpu.client.transfers import LastTransfer
from kpu.client.verdicts import IsDeleted, IsSuspended, Ready, judge
from kpu.client.waiting import Tell, Wait, refusal
from kpu.errors import NotReady, ReadyTimeout, ServerGone, TransferFailed, Unauthenticated
from kpu.wire.messages import TensorResponse

BLOCKED_S = 2.0
"""How long making a Compute may hold up a running event loop; what takes longer goes on beside it."""
LAZY_READY_S = 60.0
"""For a transfer by someone who has not waited for `ready()`."""
LOOK_S = 10.0
LEAST_S = 0.2

T = TypeVar("T")


class SharedComputeWarning(UserWarning):
    """Another program applied another intent to the same Compute."""


class Compute:
    """Making one creates the Compute of this name in the cluster, or updates it, by server-side apply.

    What the API server refuses is raised here, as `kubernetes.client.ApiException`. Within a running event loop this
    takes two seconds at most: an API server that is slower than that is raised by the next method that is awaited.

    `resources` are amounts such as `{"nvidia.com/gpu": 1}`, `tls` is the name of a kubernetes.io/tls Secret, and
    `on_event(reason, message)` is called with what happens while `ready()` waits.
    """

    def __init__(
        self,
        name: str,
        image: str | None = None,
        command: Sequence[str] | None = None,
        args: Sequence[str] | None = None,
        env: Mapping[str, str] | None = None,
        labels: Mapping[str, str] | None = None,
        annotations: Mapping[str, str] | None = None,
        suspend: bool = False,
        host: str | None = None,
        port: int = 50051,
        *,
        resources: Mapping[str, str | int | float] | None = None,
        on_event: Tell | None = None,
        tls: str | None = None,
    ) -> None:
        intent = Intent(
            name=name,
            image=image,
            command=command,
            args=args,
            env={} if env is None else env,
            labels={} if labels is None else labels,
            annotations={} if annotations is None else annotations,
            resources={} if resources is None else resources,
            tls_secret=tls,
        )
        self._intent = intent.own_copy()
        check_suspend(name, suspend)
        self._line = Line(check_host(name, host), check_port(name, port))
        self._on_event = on_event
        self._told = set[tuple[Any, ...]]()
        self._computes: Computes | None = None
        self._resource: KpuV1alpha1Compute | None = None
        self._applied: KpuV1alpha1Compute | None = None
        self._making = start(lambda: self._make(suspend))
        if wait_for(self._making, BLOCKED_S if is_in_event_loop() else None):
            self._making.result()

    @property
    def name(self) -> str:
        return self._intent.name

    @property
    def namespace(self) -> str:
        return self._cluster.namespace

    @property
    def resource(self) -> KpuV1alpha1Compute | None:
        """The Compute as it was when the API server was last asked about it."""
        return self._resource

    @property
    def transfer(self) -> LastTransfer:
        """`transfer.stats` tells of the last call: its path, bytes, copies, seconds and GB/s. None before the first."""
        return self._line.transfer

    async def ready(self, timeout: float | None = 300) -> Self:
        """Wait until the Compute can be used, and connect. `timeout` in seconds, None to wait for ever.

        Raises ReadyTimeout (a TimeoutError), ComputeFailed for what waiting cannot better, Suspended, ComputeDeleted,
        Unreachable, or Unauthenticated for a token that cannot be known here. Each says why.
        """
        await self._connect(Deadline.after(timeout))
        return self

    def is_ready(self) -> bool:
        """Asks the API server. Within a running event loop it is given two seconds to answer, and else ten."""
        deadline = Deadline.after(BLOCKED_S if is_in_event_loop() else LOOK_S)
        if not wait_for(self._making, deadline.left_s):
            raise self._too_late(deadline)
        self._making.result()
        live = self._cluster.get(self.name, deadline.left_s)
        if live is None:
            return False
        self._notice(live)
        return isinstance(judge(live), Ready)

    async def send_tensors(self, *tensors: Any) -> TensorResponse:
        """The server's answer: `success`, `message`, `received_tensor_ids`."""
        return await self._use(lambda server: server.send_tensors(*tensors))

    async def receive_tensors(self, count: int = 1, parameters: Mapping[str, object] | None = None) -> list[Any]:
        return await self._use(lambda server: server.receive_tensors(count, parameters))

    async def stream_tensors(self, *tensors: Any) -> list[Any]:
        """Each tensor as the server has processed it, in their order."""
        return await self._use(lambda server: server.stream_tensors(*tensors))

    async def benchmark(self, sizes: Sequence[int] = (1 << 10, 1 << 20, 1 << 26), rounds: int = 5) -> Benchmark:
        """Measure transfers of these sizes, in bytes. What comes back can be printed."""
        return await self._use(lambda server: measure(server, sizes, rounds))

    async def suspend(self) -> None:
        """Scale to zero and close the connection."""
        await self._apply_again(suspend=True)
        await self._line.close()

    async def resume(self) -> None:
        """Have it started again; `ready()` waits until it is."""
        await self._apply_again(suspend=False)

    async def delete(self, grace_period_seconds: int = DEFAULT_GRACE_S) -> None:
        """Delete the Compute and wait until it is gone. One that is not there is fine."""
        check_grace(self.name, grace_period_seconds)
        await self._made()
        await self._line.close()
        await in_thread(lambda: delete_and_wait(self._cluster, self.name, grace_period_seconds))

    async def close(self) -> None:
        """Close the connection and leave the Compute as it is. The next transfer connects again."""
        await self._line.close()

    async def __aenter__(self) -> Self:
        try:
            return await self.ready()
        except BaseException as error:
            await self.__aexit__(type(error), error, error.__traceback__)
            raise

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        """Deletes the Compute. An error of the block is worth more than one of the deletion, which becomes its note."""
        try:
            await self.delete()
        except Exception as not_deleted:
            if error is None:
                raise
            error.add_note(f"Compute {self.name} could not be deleted: {not_deleted}")

    def __repr__(self) -> str:
        state = type(judge(self._resource)).__name__ if self._resource else "not applied"
        return f"<Compute {self._full_name}: {state}>"

    @property
    def _full_name(self) -> str:
        return f"{self._computes.namespace}/{self.name}" if self._computes else self.name

    @property
    def _cluster(self) -> Computes:
        if self._computes is None:
            raise NotReady(f"Compute {self.name} is not applied yet: await ready()")
        return self._computes

    def _make(self, suspend: bool) -> None:
        cluster = current_cluster()
        self._computes = Computes(cluster.api, cluster.namespace)
        self._resource = self._applied = self._computes.apply(self._intent.manifest(cluster.namespace, suspend=suspend))

    async def _made(self) -> None:
        await arrival(self._making)

    async def _connect(self, deadline: Deadline) -> TensorClient:
        await self._answered(self._made(), deadline)
        await self._outlive_predecessor(deadline)
        tell = posted(self._on_event) if self._on_event else None
        wait = Wait(self._cluster, self.name, deadline, tell, self._told)
        try:
            live = await in_thread(wait.until_ready)
        finally:
            wait.given_up.set()
        self._notice(live)
        try:
            return await self._line.open(live, self._cluster, deadline)
        except ServerGone as error:
            await self._raise_what_became_of_it(error)
            raise

    async def _answered(self, apply: Coroutine[Any, Any, None], deadline: Deadline) -> None:
        """One that is done already takes no time, so it is fine to have none."""
        try:
            async with asyncio.timeout(None if deadline.timeout_s is None else max(deadline.left_s, LEAST_S)):
                await apply
        except TimeoutError:
            raise self._too_late(deadline) from None

    def _too_late(self, deadline: Deadline) -> ReadyTimeout:
        return ReadyTimeout(
            f"Compute {self.name} was not ready within {deadline}: the API server has not answered its apply yet"
        )

    async def _outlive_predecessor(self, deadline: Deadline) -> None:
        """An apply to a Compute that is being deleted is lost with it: make another once it is gone."""
        met = self._applied
        if met is None or met.metadata.deletion_timestamp is None:
            return
        suspend = bool(met.spec.suspend)
        wait = Wait(self._cluster, self.name, deadline)
        try:
            is_gone = await in_thread(lambda: wait.until_gone(met.metadata.uid))
        finally:
            wait.given_up.set()
        if not is_gone:
            raise ReadyTimeout(
                f"An earlier Compute {self._full_name} is still being deleted after {deadline}: wait longer, or "
                "look at its finalizers"
            )
        await self._answered(in_thread(lambda: self._make(suspend)), deadline)

    async def _apply_again(self, *, suspend: bool) -> None:
        """The whole intent: what an apply leaves out is taken away. A Compute that others delete meanwhile stays so."""
        await self._made()
        await self._outlive_predecessor(Deadline.after(LAZY_READY_S))
        if live := await in_thread(lambda: self._cluster.get(self.name)):
            self._notice(live)
        manifest = self._intent.manifest(self.namespace, suspend=suspend)
        applied = await in_thread(lambda: self._cluster.apply_to(live, manifest))
        if applied is None:
            raise refusal(self._full_name, IsDeleted())
        self._resource = applied

    def _notice(self, live: KpuV1alpha1Compute) -> None:
        self._resource = live
        if (live.metadata.annotations or {}).get(INTENT, self._intent.digest) != self._intent.digest:
            warnings.warn(
                f"Compute {self._full_name} was changed by another program that wants something else of it than this "
                "object does; give each its own name, or make both ask for the same",
                SharedComputeWarning,
                stacklevel=3,
            )

    async def _use(self, transfer: Callable[[TensorClient], Awaitable[T]]) -> T:
        """A call that is refused for its token has done nothing yet: it is made again with the one that holds now."""
        try:
            return await self._try(transfer)
        except Unauthenticated:
            return await self._try(transfer)

    async def _try(self, transfer: Callable[[TensorClient], Awaitable[T]]) -> T:
        server = self._line.client or await self._connect(Deadline.after(LAZY_READY_S))
        try:
            return await transfer(server)
        except (ServerGone, Unauthenticated) as error:
            self._line.drop(server)
            await self._raise_what_became_of_it(error)
            raise

    async def _raise_what_became_of_it(self, error: TransferFailed) -> None:
        """A server that is gone may have been suspended or deleted by somebody; then that is what to say."""
        try:
            live = await in_thread(lambda: self._cluster.get(self.name, LOOK_S))
        except client.ApiException:
            return
        verdict = IsDeleted() if live is None else judge(live)
        if isinstance(verdict, IsDeleted | IsSuspended):
            raise refusal(self._full_name, verdict) from error
