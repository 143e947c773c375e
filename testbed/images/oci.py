"""An image as one file: an OCI image layout in a tar, with the list that older Docker engines look for beside it.

`ctr images import` takes it and knows by an annotation how the image is called; `docker load` takes it too. Everything
in it follows from the image's content, the moment of creation is fixed, so equal images have equal digests.
"""

import hashlib
import io
import platform
import tarfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec

from testbed.images.cache import locked, replace
from testbed.images.entries import Directory, Entry
from testbed.images.errors import ImageFailed
from testbed.images.layers import MTIME, Blob, Layer, write_layer

CREATED = "1980-01-01T00:00:00Z"
LAYOUT = {"imageLayoutVersion": "1.0.0"}
INDEX_TYPE = "application/vnd.oci.image.index.v1+json"
MANIFEST_TYPE = "application/vnd.oci.image.manifest.v1+json"
CONFIG_TYPE = "application/vnd.oci.image.config.v1+json"
LAYER_TYPE = "application/vnd.oci.image.layer.v1.tar"
ARCHITECTURES = {"x86_64": "amd64", "aarch64": "arm64"}

Document = dict[str, Any]


def machine_architecture() -> str:
    """This machine's architecture, as images call it."""
    machine = platform.machine()
    if machine not in ARCHITECTURES:
        raise ImageFailed(f"this machine is a {machine}, expected one of {', '.join(ARCHITECTURES)}")
    return ARCHITECTURES[machine]


class Image(msgspec.Struct, frozen=True, kw_only=True):
    """`layers` from the bottom up; `user` is `uid:gid`."""

    reference: str
    layers: tuple[Layer, ...]
    entrypoint: tuple[str, ...] = ()
    command: tuple[str, ...] = ()
    environment: Mapping[str, str] = {}
    workdir: str = "/"
    user: str = "0:0"
    labels: Mapping[str, str] = {}
    architecture: str = msgspec.field(default_factory=machine_architecture)


class Written(msgspec.Struct, frozen=True):
    """An image's file, and the digest of its manifest by which a runtime knows it."""

    path: Path
    reference: str
    digest: str


def write_image(image: Image, path: Path, cache: Path) -> Written:
    """Write the image where whoever looks sees all of it or what was there before."""
    _check(image)
    blobs = [write_layer(layer, cache) for layer in image.layers]
    config = _encode(_config(image, blobs))
    manifest = _encode(_manifest(config, blobs))
    index = _encode(_index(image, manifest))
    documents = {
        "oci-layout": _encode(LAYOUT),
        "index.json": index,
        "manifest.json": _encode(_docker_list(image, config, blobs)),
        _blob_path(_sha256(config)): config,
        _blob_path(_sha256(manifest)): manifest,
    }
    with locked(path):
        replace(path, lambda scratch: _write_tar(documents, blobs, scratch))
    return Written(path, image.reference, f"sha256:{_sha256(manifest)}")


def _check(image: Image) -> None:
    if image.architecture not in ARCHITECTURES.values():
        known = ", ".join(ARCHITECTURES.values())
        raise ImageFailed(f"{image.reference}: architecture is {image.architecture!r}, expected one of {known}")
    if ":" not in image.reference.rpartition("/")[2] or not _names_a_registry(image.reference):
        raise ImageFailed(
            f"{image.reference}: is no full image name, expected one such as docker.io/library/busybox:testbed"
        )
    below: dict[str, Entry] = {}
    for layer in image.layers:
        _refuse_changed_folders(image, layer, below)
        below |= {entry.path: entry for entry in layer.entries}


def _names_a_registry(reference: str) -> bool:
    """A runtime would look for `a/b:c` on docker.io; before a port stands a host for sure."""
    host, _, path = reference.partition("/")
    return "/" in path or bool(path and ":" in host)


def _refuse_changed_folders(image: Image, layer: Layer, below: Mapping[str, Entry]) -> None:
    """A folder over a link hides what the link leads to, and over another folder it changes who may write there."""
    for entry in layer.entries:
        covered = below.get(entry.path, entry)
        if covered != entry and Directory in (type(entry), type(covered)):
            raise ImageFailed(
                f"{image.reference}: {entry.path} is {covered} in one layer and {entry} in a later one, "
                "expected the same folder in both"
            )


def _config(image: Image, blobs: list[Blob]) -> Document:
    return {
        "created": CREATED,
        "architecture": image.architecture,
        "os": "linux",
        "config": {
            "Entrypoint": list(image.entrypoint),
            "Cmd": list(image.command),
            "Env": [f"{name}={value}" for name, value in sorted(image.environment.items())],
            "WorkingDir": image.workdir,
            "User": image.user,
            "Labels": dict(image.labels),
        },
        "rootfs": {"type": "layers", "diff_ids": [f"sha256:{blob.sha256}" for blob in blobs]},
        "history": [{"created": CREATED, "created_by": layer.made_by} for layer in image.layers],
    }


def _manifest(config: bytes, blobs: list[Blob]) -> Document:
    return {
        "schemaVersion": 2,
        "mediaType": MANIFEST_TYPE,
        "config": _descriptor(CONFIG_TYPE, _sha256(config), len(config)),
        "layers": [_descriptor(LAYER_TYPE, blob.sha256, blob.size) for blob in blobs],
    }


def _index(image: Image, manifest: bytes) -> Document:
    names = {
        "io.containerd.image.name": image.reference,
        "org.opencontainers.image.ref.name": image.reference.rpartition(":")[2],
    }
    described = _descriptor(MANIFEST_TYPE, _sha256(manifest), len(manifest))
    return {"schemaVersion": 2, "mediaType": INDEX_TYPE, "manifests": [described | {"annotations": names}]}


def _docker_list(image: Image, config: bytes, blobs: list[Blob]) -> list[Document]:
    layers = [_blob_path(blob.sha256) for blob in blobs]
    return [{"Config": _blob_path(_sha256(config)), "RepoTags": [image.reference], "Layers": layers}]


def _descriptor(media_type: str, sha256: str, size: int) -> Document:
    return {"mediaType": media_type, "digest": f"sha256:{sha256}", "size": size}


def _write_tar(documents: Mapping[str, bytes], blobs: list[Blob], path: Path) -> None:
    with tarfile.open(path, "w", format=tarfile.PAX_FORMAT) as tar:
        for name, content in documents.items():
            tar.addfile(_header(name, len(content)), io.BytesIO(content))
        for blob in {blob.sha256: blob for blob in blobs}.values():
            with open(blob.path, "rb") as content:
                tar.addfile(_header(_blob_path(blob.sha256), blob.size), content)


def _header(name: str, size: int) -> tarfile.TarInfo:
    header = tarfile.TarInfo(name)
    header.size, header.mtime = size, MTIME
    return header


def _blob_path(sha256: str) -> str:
    return f"blobs/sha256/{sha256}"


def _sha256(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def _encode(document: object) -> bytes:
    return msgspec.json.encode(document, order="sorted")
