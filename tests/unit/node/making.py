"""Tiles, holders and pods for tests of a node; every figure that a test cares about is an argument."""

from base64 import b64encode
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec

from tessera.model.allocations import Allocation, CardShare
from tessera.model.annotations import keys
from tessera.model.annotations.allocations import encode_containers
from tessera.model.annotations.claims import claim_marks
from tessera.node.pods import NODE_PODS, Pod
from tessera.node.preparing import Preparer
from tessera.node.protocols.device_plugin_pb2 import ContainerAllocateResponse, Mount
from tessera.node.run_directory import RunDirectory
from tessera.node.terms import NOTHING_MORE, Permitted
from tessera.node.tile_store import TileStore
from tessera.node.tiles import Tile, mount_point
from tessera.vendors.backends import CardSources
from tessera.vendors.loading import load_catalogue
from tests.builders import a_ref, a_share

NODE = "gpu-1"
RESOURCE = "nvidia.com/gpu"
ALLOCATED = "hami.io/vgpu-devices-allocated"
NOTHING: Mapping[str, str] = {}
CATALOGUE = load_catalogue()


def a_preparer(root: Path, sources: CardSources, store: TileStore, *, permitted: Permitted = NOTHING_MORE) -> Preparer:
    """Of our node, with all that it keeps below `root`."""
    run, hook = RunDirectory(root / "run"), str(root / "hook")
    return Preparer(NODE, CATALOGUE, sources.managers, store, run=run, hook_path=hook, permitted=permitted)


def a_tile(token: str = "aa", *shares: CardShare, uid: str = "uid-1", **changes: Any) -> Tile:
    """A tile of container `main`; each share is behind an id of its own."""
    shares = shares or (a_share("GPU-0", 1000, 10),)
    ids = tuple(f"tile-{position}" for position in range(len(shares)))
    figures = {"resource": RESOURCE, "ids": ids, "container": "main", "pod": a_ref(uid, name="train-0")}
    return Tile(token=token, shares=shares, **{**figures, **changes})


def a_container(name: str = "main", **limits: int) -> dict[str, Any]:
    """One NVIDIA card unless `limits` say otherwise, by the part of the resource's name after the slash."""
    asked = {f"nvidia.com/{resource}": str(amount) for resource, amount in (limits or {"gpu": 1}).items()}
    return {"name": name, "resources": {"limits": asked}}


def a_pod(
    *given: tuple[CardShare, ...],
    containers: tuple[dict[str, Any], ...] = (),
    init: tuple[dict[str, Any], ...] = (),
    uid: str = "uid-1",
    annotations: Mapping[str, str] = NOTHING,
) -> Pod:
    """A pod on our node; `given` are the shares of its containers, init containers first."""
    said = {**annotations, **({ALLOCATED: encode_containers(given)} if given else {})}
    document = {
        "metadata": {"name": "train-0", "namespace": "default", "uid": uid, "annotations": said},
        "spec": {"nodeName": NODE, "containers": containers or (a_container(),), "initContainers": init},
    }
    return NODE_PODS.decode(msgspec.json.encode(document), "pods")


def a_claim_container(name: str = "main", **limits: int) -> dict[str, Any]:
    """As the webhook marks it."""
    container = a_container(name, **limits) if limits else {"name": name, "resources": {"limits": {}}}
    container["resources"]["limits"][keys.CLAIM] = "1"
    return container


def a_claim_pod(*claimed: CardShare, containers: tuple[dict[str, Any], ...] = (), **more: Any) -> Pod:
    """A pod that got these cards as a whole."""
    marks = claim_marks(Allocation(NODE, claimed=claimed), {share.uuid: 0 for share in claimed}) if claimed else {}
    return a_pod(containers=containers or (a_claim_container(),), annotations=marks, **more)


def an_entry(
    uid: str, container: str, ids: Any, *, token: str = "", resource: str = RESOURCE, **changes: Any
) -> dict[str, Any]:
    """One container in the kubelet's checkpoint; `ids` as that has them."""
    library = Mount(container_path="/usr/lib/library.so", host_path="/opt/library.so", read_only=True)
    tile = Mount(container_path=mount_point("NVIDIA"), host_path=f"/var/lib/tessera/tiles/{token}", read_only=True)
    answer = ContainerAllocateResponse(mounts=[library, tile] if token else [library])
    entry = {
        "PodUID": uid,
        "ContainerName": container,
        "ResourceName": resource,
        "DeviceIDs": ids,
        "AllocResp": b64encode(answer.SerializeToString()).decode(),
    }
    return {**entry, **changes}


def a_checkpoint(*entries: Any) -> bytes:
    data = {"PodDeviceEntries": entries, "RegisteredDevices": {RESOURCE: ["tile-0"]}}
    return msgspec.json.encode({"Data": data, "Checksum": 1})
