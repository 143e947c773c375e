"""What kube-scheduler leaves on a pod, left by us where there is none: a condition, and an event."""

from tessera.errors import Conflict, NotFound
from tessera.kube.client import Client, PatchType
from tessera.kube.event_series import ObjectReference
from tessera.kube.events import Recorder
from tessera.kube.kinds import PODS
from tessera.kube.pods import Pod
from tessera.kube.timing import SYSTEM_CLOCK, Clock

SCHEDULED, UNSCHEDULABLE = "PodScheduled", "Unschedulable"


class PodOutcomes:
    def __init__(self, client: Client, recorder: Recorder, *, clock: Clock = SYSTEM_CLOCK) -> None:
        self._client = client
        self._recorder = recorder
        self._clock = clock

    def placed(self, pod: Pod, node: str) -> None:
        where = f"{pod.metadata.namespace}/{pod.metadata.name}"
        self._recorder.normal(_about(pod), "Scheduled", f"Successfully assigned {where} to {node}")

    async def not_placed(self, pod: Pod, why: str) -> None:
        self._recorder.warning(_about(pod), "FailedScheduling", why)
        condition = {"type": SCHEDULED, "status": "False", "reason": UNSCHEDULABLE, "message": why}
        if not _is_known_as_waiting(pod):
            condition["lastTransitionTime"] = self._clock.wall().strftime("%Y-%m-%dT%H:%M:%SZ")
        change = {"metadata": {"uid": pod.metadata.uid}, "status": {"conditions": [condition]}}
        try:
            await self._client.patch(
                PODS,
                pod.metadata.name or "",
                change,
                namespace=pod.metadata.namespace or "",
                patch_type=PatchType.STRATEGIC,
                subresource="status",
            )
        except (NotFound, Conflict):
            return  # the pod that was meant is gone


def _is_known_as_waiting(pod: Pod) -> bool:
    """Then another reason is no transition, and since when it waits stays as it is."""
    conditions = pod.status.conditions or ()
    return any(condition.type == SCHEDULED and condition.status == "False" for condition in conditions)


def _about(pod: Pod) -> ObjectReference:
    head = pod.metadata
    return ObjectReference(kind="Pod", name=head.name or "", namespace=head.namespace or "", uid=head.uid or "")
