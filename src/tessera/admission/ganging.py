"""A member of a gang that asks for no card waits for the others all the same.

kube-scheduler asks us about pods that ask for something of ours. So such a member is made to ask for a resource that no
node has: kube-scheduler leaves that to us, and a kubelet passes over what its node does not know.
"""

from collections.abc import Iterator

from tessera.admission.patching import Change
from tessera.admission.pods import ArrivingPod
from tessera.admission.settings import Settings
from tessera.model.annotations.keys import GANG

ONE = "1"


def complete_member(pod: ArrivingPod, settings: Settings) -> Iterator[Change]:
    """Nothing, if the pod names no gang."""
    if not pod.says(GANG):
        return
    if settings.takes_over(pod.spec.scheduler_name):
        yield Change(("spec", "schedulerName"), settings.scheduler)
    for figures in ("limits", "requests"):
        yield Change(("spec", "containers", 0, "resources", figures, GANG), ONE)
