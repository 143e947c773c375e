"""A pod that waits, rewritten: what was decided on it before meets another version and can no longer land."""

from tessera.kube.client import Client
from tessera.kube.objects import identify
from tessera.kube.pods import CACHED_PODS, Pod
from tessera.model.annotations.keys import FENCED_AT


async def fence_pod(client: Client, pod: Pod, stamp: str) -> None:
    """Conflict, if the pod is no longer as it was read."""
    key, _, resource_version = identify(pod)
    metadata = {"resourceVersion": resource_version, "annotations": {FENCED_AT: stamp}}
    await client.patch(CACHED_PODS, key.name, {"metadata": metadata}, namespace=key.namespace)
