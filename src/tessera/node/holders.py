"""Who holds which tiles, from what the kubelet tells: its pod-resources API and its checkpoint file.

The API leaves ordinary init containers out, although app containers take over their tiles. The checkpoint names every
container and what we answered for it, but is no API: whatever of it does not look as expected is left aside.
"""

from base64 import b64decode
from binascii import Error as NotBase64
from collections.abc import Iterable, Sequence
from pathlib import PurePath

import msgspec
from google.protobuf.message import DecodeError

from tessera.node.protocols.device_plugin_pb2 import ContainerAllocateResponse
from tessera.node.protocols.pod_resources_pb2 import ListPodResourcesResponse
from tessera.node.tiles import is_tile


class Holder(msgspec.Struct, frozen=True, kw_only=True):
    """A container and the tiles it holds of one resource. The API knows the pod's name, the checkpoint its UID."""

    resource: str
    ids: frozenset[str]
    container: str
    pod_uid: str = ""
    namespace: str = ""
    pod: str = ""
    token: str = ""


def read_pod_resources(answer: ListPodResourcesResponse) -> tuple[Holder, ...]:
    """A container's tiles of one resource may be told in several parts, one for each NUMA node."""
    found: dict[tuple[str, str, str, str], set[str]] = {}
    for pod in answer.pod_resources:
        for container in pod.containers:
            for devices in container.devices:
                key = pod.namespace, pod.name, container.name, devices.resource_name
                found.setdefault(key, set()).update(devices.device_ids)
    return tuple(
        Holder(resource=resource, ids=frozenset(ids), container=container, namespace=namespace, pod=pod)
        for (namespace, pod, container, resource), ids in found.items()
    )


class _Entry(msgspec.Struct, frozen=True, kw_only=True):
    PodUID: str
    ContainerName: str
    ResourceName: str
    DeviceIDs: dict[str, tuple[str, ...] | None] | tuple[str, ...] | None = None
    AllocResp: str | None = None


class _Data(msgspec.Struct, frozen=True, kw_only=True):
    PodDeviceEntries: tuple[msgspec.Raw, ...] | None = None


class _Checkpoint(msgspec.Struct, frozen=True, kw_only=True):
    Data: _Data


def read_checkpoint(content: bytes) -> tuple[Holder, ...] | None:
    """None, where it is no checkpoint that we know: then nothing is known of anybody."""
    try:
        entries = msgspec.json.decode(content, type=_Checkpoint).Data.PodDeviceEntries or ()
    except msgspec.MsgspecError:
        return None
    return tuple(holder for holder in map(_read_entry, entries) if holder is not None)


def _read_entry(raw: msgspec.Raw) -> Holder | None:
    try:
        entry = msgspec.json.decode(raw, type=_Entry)
    except msgspec.MsgspecError:
        return None
    return Holder(
        resource=entry.ResourceName,
        ids=frozenset(_ids_of(entry)),
        container=entry.ContainerName,
        pod_uid=entry.PodUID,
        token=_token_in(entry.AllocResp or ""),
    )


def _ids_of(entry: _Entry) -> Iterable[str]:
    """By NUMA node since Kubernetes 1.20, a plain list before."""
    ids = entry.DeviceIDs or ()
    return (one for some in ids.values() for one in some or ()) if isinstance(ids, dict) else ids


def _token_in(answer: str) -> str:
    try:
        response = ContainerAllocateResponse.FromString(b64decode(answer))
    except (DecodeError, NotBase64, ValueError):
        return ""
    return next((PurePath(mount.host_path).name for mount in response.mounts if is_tile(mount.container_path)), "")


def holders_of(
    resource: str, ids: frozenset[str], listed: Sequence[Holder], kept: Sequence[Holder], answered: Sequence[str]
) -> tuple[Holder, ...]:
    """The containers for which these tiles may be about to start, each with its token; none if nobody is known yet.

    `listed` is what the API tells, `kept` what the checkpoint has, `answered` are the tokens that we gave for these
    very tiles. Where the checkpoint knows nobody, the API's one container must have had the one answer.
    """
    exact = [holder for holder in kept if (holder.resource, holder.ids) == (resource, ids) and holder.token]
    if exact:
        return tuple(exact)
    theirs = [holder for holder in listed if (holder.resource, holder.ids) == (resource, ids)]
    if len(theirs) == 1 and len(answered) == 1:
        return (msgspec.structs.replace(theirs[0], token=answered[0]),)
    return ()
