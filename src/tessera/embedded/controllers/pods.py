"""Pods as controllers see them: whether one counts, whether it is ready, and which is missed least."""

import random
from collections.abc import Iterator
from datetime import datetime
from typing import Any

import msgspec

from tessera.embedded.controllers.objects import Metadata, Thing, refer
from tessera.embedded.controllers.times import read_time, seconds_since
from tessera.embedded.resources.parts import inside
from tessera.kube.kinds import PODS as POD_DOCUMENTS
from tessera.kube.kinds import Kind
from tessera.kube.objects import Document

ENDED = ("Succeeded", "Failed")
DELETION_COST = "controller.kubernetes.io/pod-deletion-cost"
_SUFFIX_ALPHABET = "bcdfghjklmnpqrstvwxz2456789"
_SUFFIX_LENGTH = 5
_MOST_PREFIX = 63 - _SUFFIX_LENGTH


class _Part(msgspec.Struct, frozen=True, kw_only=True, rename="camel", gc=False):
    pass


class Port(_Part, frozen=True, kw_only=True):
    container_port: int
    name: str = ""
    protocol: str = "TCP"


class Container(_Part, frozen=True, kw_only=True):
    name: str
    ports: tuple[Port, ...] | None = None


class Spec(_Part, frozen=True, kw_only=True):
    containers: tuple[Container, ...] = ()
    node_name: str = ""
    hostname: str = ""
    subdomain: str = ""
    affinity: Document | None = None
    tolerations: tuple[Document, ...] | None = None


class Condition(_Part, frozen=True, kw_only=True):
    type: str
    status: str
    last_transition_time: str | None = None


class Terminated(_Part, frozen=True, kw_only=True):
    exit_code: int = 0
    finished_at: str | None = None


class ContainerState(_Part, frozen=True, kw_only=True):
    terminated: Terminated | None = None


class ContainerStatus(_Part, frozen=True, kw_only=True):
    name: str = ""
    restart_count: int = 0
    state: ContainerState | None = None


class Status(_Part, frozen=True, kw_only=True):
    phase: str = "Pending"
    pod_ip: str = msgspec.field(name="podIP", default="")
    conditions: tuple[Condition, ...] | None = None
    init_container_statuses: tuple[ContainerStatus, ...] | None = None
    container_statuses: tuple[ContainerStatus, ...] | None = None


class Pod(Thing, frozen=True, kw_only=True, gc=False):
    spec: Spec
    status: Status = Status()

    @property
    def is_active(self) -> bool:
        """Whether it works, or still may."""
        return self.status.phase not in ENDED and not self.metadata.is_going

    @property
    def is_ready(self) -> bool:
        return self.ready is not None

    @property
    def ready(self) -> Condition | None:
        conditions = self.status.conditions or ()
        return next((one for one in conditions if (one.type, one.status) == ("Ready", "True")), None)

    @property
    def restarts(self) -> int:
        return sum(status.restart_count for status in self.status.container_statuses or ())


PODS = POD_DOCUMENTS.decoded_as(Pod)


def unavailable_for_s(pod: Pod, min_ready_s: int, now: datetime) -> float | None:
    """How long until it has been ready for long enough; 0 if it has, None if it is not ready."""
    if pod.ready is None:
        return None
    if not min_ready_s or pod.ready.last_transition_time is None:
        return 0.0
    return max(0.0, min_ready_s - seconds_since(pod.ready.last_transition_time, now))


def is_available(pod: Pod, min_ready_s: int, now: datetime) -> bool:
    return unavailable_for_s(pod, min_ready_s, now) == 0


def importance(pod: Pod) -> tuple[bool, bool, bool, int, float, int, float]:
    """Pods that sort first are missed least: without a node, not running, not ready, cheap, often restarted, young."""
    ready_since = (pod.ready.last_transition_time or "") if pod.ready else ""
    return (
        bool(pod.spec.node_name),
        pod.status.phase == "Running",
        pod.is_ready,
        _deletion_cost(pod.metadata),
        _youth(ready_since),
        -pod.restarts,
        _youth(pod.metadata.creation_timestamp),
    )


def make_pod(template: Document, owner_kind: Kind[Any], owner: Metadata, **metadata: Any) -> Document:
    """A pod from a template, for the one who manages it. Labels and annotations come on top of the template's."""
    told = inside(template, "metadata")
    merged: Document = {
        **{field: {**inside(told, field), **metadata.pop(field, {})} for field in ("labels", "annotations")},
        **metadata,
        "namespace": owner.namespace,
        "ownerReferences": [refer(owner_kind, owner)],
    }
    if told.get("finalizers"):
        merged["finalizers"] = told["finalizers"]
    return {"metadata": {name: value for name, value in merged.items() if value}, "spec": template["spec"]}


def suffixes(chance: random.Random) -> Iterator[str]:
    """What makes the names of pods differ."""
    while True:
        yield "".join(chance.choices(_SUFFIX_ALPHABET, k=_SUFFIX_LENGTH))


def named(prefix: str, suffix: str) -> Document:
    """The name of a pod, and where it comes from."""
    return {"name": f"{prefix[:_MOST_PREFIX]}{suffix}", "generateName": prefix}


def _deletion_cost(metadata: Metadata) -> int:
    try:
        return int((metadata.annotations or {}).get(DELETION_COST, "0"))
    except ValueError:
        return 0


def _youth(moment: str) -> float:
    """Smaller the later it was."""
    return -read_time(moment).timestamp() if moment else 0.0
