"""What is wrong with the pod of a Compute, in one word and a sentence. Pure.

A trouble is final when waiting does not help: an image that has no name, a program that ended again and again. What a
kubelet tells swings to and fro, from pulling to backing off, from ended to started anew; the word for it does not.
"""

import re
from collections.abc import Iterable, Set
from datetime import datetime, timedelta
from typing import Any, NamedTuple

import msgspec

from tessera.kube.kinds import PODS
from tessera.kube.objects import Document, ObjectMeta
from tessera.operators.compute_children import CONTAINER
from tessera.operators.compute_objects import NAME_LABEL
from tessera.operators.owning import OwnerReference

REVISION_LABEL = "controller-revision-hash"
IMAGE_PULL_FAILED, UNSCHEDULABLE = "ImagePullFailed", "Unschedulable"
NEVER_PULLED = ("InvalidImageName", "ErrImageNeverPull")
NOT_PULLED = ("ErrImagePull", "ImagePullBackOff", "RegistryUnavailable", "ImageInspectError")
NOT_CREATED = {"CreateContainerConfigError": "ContainerConfigFailed", "CreateContainerError": "ContainerCreateFailed"}
MOST_RESTARTS = 3
QUIET = timedelta(minutes=10)
"""A container that has run for so long is not crashing in a loop; the kubelet thinks so too."""
MOST_WORDS = 1000
_BACK_OFF = re.compile(r'Back-off pulling image "[^"]*"(?:: )?(?:[A-Za-z]+: )?')


class Trouble(NamedTuple):
    reason: str
    message: str
    is_final: bool = False


class _Part(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    pass


class Waiting(_Part, frozen=True, kw_only=True):
    reason: str = ""
    message: str = ""


class Running(_Part, frozen=True, kw_only=True):
    started_at: datetime | None = None


class Terminated(_Part, frozen=True, kw_only=True):
    exit_code: int = 0
    reason: str = ""
    message: str = ""
    started_at: datetime | None = None
    finished_at: datetime | None = None

    @property
    def has_long_run(self) -> bool:
        """Restarts are counted over a pod's whole life: what ended after a long run is not what crashes in a loop."""
        if self.started_at is None or self.finished_at is None:
            return False
        return self.finished_at - self.started_at >= QUIET


class State(_Part, frozen=True, kw_only=True):
    waiting: Waiting | None = None
    running: Running | None = None
    terminated: Terminated | None = None


class ContainerStatus(_Part, frozen=True, kw_only=True):
    name: str
    ready: bool = False
    restart_count: int = 0
    state: State = State()
    last_state: State = State()


class PodCondition(_Part, frozen=True, kw_only=True):
    type: str
    status: str
    reason: str | None = None
    message: str | None = None
    last_transition_time: datetime | None = None


class PodStatus(_Part, frozen=True, kw_only=True):
    phase: str | None = None
    reason: str | None = None
    message: str | None = None
    conditions: tuple[PodCondition, ...] | None = None
    container_statuses: tuple[ContainerStatus, ...] | None = None
    init_container_statuses: tuple[ContainerStatus, ...] | None = None


class PodMetadata(ObjectMeta, frozen=True, kw_only=True):
    labels: dict[str, str] | None = None
    annotations: dict[str, str] | None = None
    deletion_timestamp: str | None = None
    owner_references: tuple[OwnerReference, ...] | None = None


class ComputePod(_Part, frozen=True, kw_only=True):
    """`spec` as it stands in the API; `model.pods` reads it."""

    metadata: PodMetadata
    spec: Any = None
    status: PodStatus = PodStatus()

    @property
    def name(self) -> str:
        return self.metadata.name or ""

    @property
    def compute(self) -> str:
        return (self.metadata.labels or {}).get(NAME_LABEL, "")

    @property
    def revision(self) -> str:
        return (self.metadata.labels or {}).get(REVISION_LABEL, "")

    @property
    def owner_uid(self) -> str:
        """Of the StatefulSet that manages it. Labels can be anybody's."""
        owners = self.metadata.owner_references or ()
        return next((owner.uid for owner in owners if owner.controller), "")

    @property
    def is_going(self) -> bool:
        return bool(self.metadata.deletion_timestamp)

    @property
    def is_serving(self) -> bool:
        said = _condition(self, "Ready")
        return said is not None and said.status == "True" and not self.is_going

    @property
    def containers(self) -> Iterable[ContainerStatus]:
        """In the order in which they start."""
        return (*(self.status.init_container_statuses or ()), *(self.status.container_statuses or ()))


COMPUTE_PODS = PODS.decoded_as(ComputePod)


def is_pulling_in_vain(pod: ComputePod) -> bool:
    return any(one.state.waiting and one.state.waiting.reason in NOT_PULLED for one in pod.containers)


def is_long_unschedulable(pod: ComputePod, patience_s: float, now: datetime) -> bool:
    """What has just been said of a pod may be said of nodes that have just come, or of an agent that has just begun."""
    said = _condition(pod, "PodScheduled")
    if said is None or said.status == "True" or said.reason != UNSCHEDULABLE or said.last_transition_time is None:
        return False
    return (now - said.last_transition_time).total_seconds() >= patience_s


def words_of_scheduler(pod: ComputePod) -> str:
    """Why it has no node yet."""
    said = _condition(pod, "PodScheduled")
    return said.message or "" if said is not None and said.status != "True" else ""


def waits_for_volumes(pod: ComputePod) -> bool:
    """Whether it may be volumes for which its node has not started it."""
    scheduled, sandboxed = _condition(pod, "PodScheduled"), _condition(pod, "PodReadyToStartContainers")
    spec: Document = pod.spec or {}
    if not spec.get("volumes") or scheduled is None or scheduled.status != "True":
        return False
    if sandboxed is not None and sandboxed.status == "True":
        return False
    return all(one.state.running is None and one.state.terminated is None for one in pod.containers)


def count_calm_restarts(pod: ComputePod, now: datetime) -> int:
    """How often its server had been started anew when it last ran for long. 0, if nothing tells of such a run."""
    server = next((one for one in pod.containers if one.name == CONTAINER), None)
    if server is None:
        return 0
    ended = server.state.terminated or server.last_state.terminated
    has_been_calm = _has_long_run(server, now) or (ended is not None and ended.has_long_run)
    return server.restart_count if has_been_calm else 0


def find_trouble(pod: ComputePod, hopeless: Set[str], now: datetime, calm_restarts: int = 0) -> Trouble | None:
    """`hopeless` are the reasons that this time are final, although they often pass.

    `calm_restarts` do not count against a server: they were before it last ran for long.
    """
    if said := _not_scheduled(pod, hopeless):
        return said
    if pod.status.phase == "Failed":
        return Trouble(
            pod.status.reason or "PodFailed", f"pod {pod.name} has failed: {pod.status.message or 'no word'}"
        )
    found = (_find_in_container(pod, one, hopeless, now, calm_restarts) for one in pod.containers)
    return next((trouble for trouble in found if trouble), None)


def describe_start(pod: ComputePod) -> str:
    """What a pod without trouble is still waiting for."""
    if pod.is_going:
        return f"pod {pod.name} is ending"
    waiting = next((one for one in pod.containers if not one.ready), None)
    if waiting is None:
        return f"pod {pod.name} has not been started by its node yet"
    if waiting.state.running:
        return f"pod {pod.name} runs, and its container {waiting.name} has not passed its readiness probe yet"
    reason = waiting.state.waiting.reason if waiting.state.waiting else ""
    return f"pod {pod.name} is being started{f' ({reason})' if reason else ''}"


def _not_scheduled(pod: ComputePod, hopeless: Set[str]) -> Trouble | None:
    said = _condition(pod, "PodScheduled")
    if said is None or said.status == "True" or not said.reason:
        return None
    message = said.message or f"pod {pod.name} has not been scheduled yet"
    return Trouble(said.reason, message, is_final=said.reason in hopeless)


def _condition(pod: ComputePod, kind: str) -> PodCondition | None:
    return next((one for one in pod.status.conditions or () if one.type == kind), None)


def _find_in_container(
    pod: ComputePod, one: ContainerStatus, hopeless: Set[str], now: datetime, calm_restarts: int
) -> Trouble | None:
    if one.ready:
        return None
    waiting = one.state.waiting or Waiting()
    if waiting.reason in NEVER_PULLED:
        return Trouble(waiting.reason, waiting.message or f"container {one.name}: {waiting.reason}", is_final=True)
    if waiting.reason in NOT_PULLED:
        return Trouble(IMAGE_PULL_FAILED, _pull_words(one, waiting), is_final=IMAGE_PULL_FAILED in hopeless)
    if reason := NOT_CREATED.get(waiting.reason):
        return Trouble(reason, f"container {one.name} of pod {pod.name} cannot be made: {waiting.message}")
    ended = one.state.terminated or one.last_state.terminated
    if ended is None or _has_long_run(one, now):
        return None
    return _crashed(one, ended, calm_restarts)


def _pull_words(one: ContainerStatus, waiting: Waiting) -> str:
    """What the runtime said, the same whether it was just now or is being waited out."""
    words = _BACK_OFF.sub("", waiting.message).strip()
    return words or f"the image of container {one.name} cannot be pulled"


def _has_long_run(one: ContainerStatus, now: datetime) -> bool:
    running = one.state.running
    return running is not None and running.started_at is not None and now - running.started_at >= QUIET


def _crashed(one: ContainerStatus, ended: Terminated, calm_restarts: int) -> Trouble | None:
    if one.name != CONTAINER and ended.exit_code == 0:
        return None
    times = "once" if one.restart_count == 1 else f"{one.restart_count} times"
    anew = f", it has been started anew {times}" if one.restart_count else ""
    is_final = one.restart_count - calm_restarts >= MOST_RESTARTS and not ended.has_long_run
    if ended.reason == "OOMKilled":
        message = (
            f"container {one.name} was ended because it used more memory than its limit{anew}; give it more memory"
        )
        return Trouble("OOMKilled", message, is_final)
    words = ended.message.strip()[-MOST_WORDS:]
    message = f"container {one.name} ended with exit code {ended.exit_code} ({ended.reason}){anew}"
    return Trouble("CrashLooping", f"{message}: {words}" if words else message, is_final)
