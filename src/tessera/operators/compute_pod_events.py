"""What others say of a pod in events alone: a kubelet of volumes that it cannot mount, an autoscaler of nodes to come.

Pure. An event stays for an hour, so it counts only while it is young.
"""

import re
from collections.abc import Iterable
from datetime import datetime, timedelta

from tessera.kube.kinds import Selection
from tessera.operators.compute_pods import ComputePod, Trouble
from tessera.operators.compute_refusals import Event

NOT_MOUNTED = ("FailedMount", "FailedAttachVolume")
SCALING_UP = "TriggeredScaleUp"
MOUNT_AGAIN = timedelta(minutes=5)
"""A kubelet tries again after two minutes at most, and says so each time that it fails."""
NODE_COMES = timedelta(minutes=15)
"""An autoscaler gives up a node that has not come by then."""
_IN_SUM = "Unable to attach or mount volumes"
"""What a kubelet says now and then of all volumes together, without the reason."""
_NO_SECRET = re.compile(r'secrets? "(?P<name>[^"]+)" not found')


def events_of_pod(pod: ComputePod) -> Selection:
    return Selection(namespace=pod.metadata.namespace or "", fields=f"involvedObject.uid={pod.metadata.uid or ''}")


def find_volume_trouble(events: Iterable[Event], tls_secret: str, now: datetime) -> Trouble | None:
    """In the kubelet's words. What is not there may still come, so it is never final."""
    told = [one for one in events if one.reason in NOT_MOUNTED and _is_young(one, now, MOUNT_AGAIN)]
    last = max(told, key=lambda one: (not one.message.startswith(_IN_SUM), one.at), default=None)
    if last is None:
        return None
    missing = _NO_SECRET.search(last.message)
    if tls_secret and missing and missing["name"] == tls_secret:
        message = f'Secret "{tls_secret}" is not there, which spec.tls.secretName names; make it: {last.message}'
        return Trouble("TlsSecretMissing", message)
    return Trouble("VolumeFailed", last.message)


def is_node_coming(events: Iterable[Event], now: datetime) -> bool:
    return any(one.reason == SCALING_UP and _is_young(one, now, NODE_COMES) for one in events)


def _is_young(event: Event, now: datetime, most: timedelta) -> bool:
    return event.at is not None and now - event.at < most
