"""Reads an image as the OCI image specification describes it; shares no code with the writer and trusts nothing."""

import hashlib
import io
import json
import tarfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any


@dataclass(frozen=True)
class Found:
    """One entry of a layer."""

    kind: str
    mode: int
    owner: tuple[int, int]
    content: bytes | str
    attributes: dict[str, str]


@dataclass(frozen=True)
class ReadImage:
    name: str
    digest: str
    config: dict[str, Any]
    layers: list[dict[str, Found]]
    docker: dict[str, Any]


def read_image(path: Path) -> ReadImage:
    """The image of a layout with one image; every digest, size and diff id on the way must hold."""
    with tarfile.open(path, "r:") as tar:
        names = tar.getnames()
        assert len(names) == len(set(names))
        files = {member.name: _bytes_of(tar, member) for member in tar}
    assert json.loads(files["oci-layout"]) == {"imageLayoutVersion": "1.0.0"}
    index = json.loads(files["index.json"])
    assert index["schemaVersion"] == 2
    (described,) = index["manifests"]
    manifest = json.loads(_blob(files, described, "application/vnd.oci.image.manifest.v1+json"))
    assert manifest["schemaVersion"] == 2
    config = json.loads(_blob(files, manifest["config"], "application/vnd.oci.image.config.v1+json"))
    layers = [_blob(files, layer, "application/vnd.oci.image.layer.v1.tar") for layer in manifest["layers"]]
    assert config["os"] == "linux"
    assert config["rootfs"]["type"] == "layers"
    assert config["rootfs"]["diff_ids"] == [f"sha256:{hashlib.sha256(layer).hexdigest()}" for layer in layers]
    assert len(config["history"]) == len(layers)
    (docker,) = json.loads(files["manifest.json"])
    assert {docker["Config"], *docker["Layers"]} <= files.keys()
    name = described["annotations"]["io.containerd.image.name"]
    return ReadImage(name, described["digest"], config, [_read_layer(layer) for layer in layers], docker)


def _blob(files: dict[str, bytes], descriptor: dict[str, Any], media_type: str) -> bytes:
    assert descriptor["mediaType"] == media_type
    algorithm, _, digest = descriptor["digest"].partition(":")
    blob = files[f"blobs/{algorithm}/{digest}"]
    assert hashlib.new(algorithm, blob).hexdigest() == digest
    assert len(blob) == descriptor["size"]
    return blob


def _read_layer(layer: bytes) -> dict[str, Found]:
    with tarfile.open(fileobj=io.BytesIO(layer), mode="r:") as tar:
        assert tar.getnames() == sorted(set(tar.getnames()))
        return {member.name: _found(tar, member) for member in tar}


def _found(tar: tarfile.TarFile, member: tarfile.TarInfo) -> Found:
    assert member.mtime == 315532800
    assert (member.uname, member.gname) == ("", "")
    kinds = {tarfile.REGTYPE: "file", tarfile.DIRTYPE: "directory", tarfile.SYMTYPE: "symlink"}
    content = member.linkname if member.issym() else _bytes_of(tar, member)
    attributes = {name: value for name, value in member.pax_headers.items() if name.startswith("SCHILY.xattr.")}
    return Found(kinds[member.type], member.mode, (member.uid, member.gid), content, attributes)


def _bytes_of(tar: tarfile.TarFile, member: tarfile.TarInfo) -> bytes:
    content = tar.extractfile(member)
    return content.read() if content else b""
