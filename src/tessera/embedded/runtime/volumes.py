"""The volumes of a pod as directories of its own, and where each container sees them.

ConfigMaps, Secrets, tokens and fields of the pod are files that are put in place whole, so that they can be brought up
to date under a container that reads them.
"""

import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import msgspec

from tessera.embedded.documents import Frozen
from tessera.embedded.runtime.environment import Known, Reference, data_of, expand
from tessera.embedded.runtime.fields import Place, field_value, resource_value
from tessera.embedded.runtime.namespaces import Shown
from tessera.embedded.runtime.sources import Sources
from tessera.errors import StartRefused

DEFAULT_MODE = 0o644
TOKEN_S = 3600
READ_ONLY_KINDS = ("configMap", "secret", "projected", "downwardAPI")


class File(msgspec.Struct, frozen=True):
    content: bytes
    mode: int


Files = dict[str, File]


class Volumes:
    """Those of one pod, below a directory of its own."""

    def __init__(self, pod: Frozen, directory: Path, sources: Sources, place: Place) -> None:
        self._pod = pod
        self._directory = directory
        self._sources = sources
        self._place = place
        self._listed: Sequence[Frozen] = pod["spec"].get("volumes") or ()

    @property
    def can_change(self) -> bool:
        return any(kind in volume for volume in self._listed for kind in READ_ONLY_KINDS)

    async def make(self) -> None:
        """Make them, or bring them up to date. StartRefused, if something that they need is not there."""
        for volume in self._listed:
            if "hostPath" in volume:
                _check_host_path(volume["hostPath"])
                continue
            files = await self._files(volume)
            directory = self._directory / volume["name"]
            directory.mkdir(parents=True, exist_ok=True)
            if "emptyDir" in volume:
                directory.chmod(0o777)
            else:
                _put_files(directory, files)

    def mounts_of(self, container: Frozen, environment: Mapping[str, str]) -> list[Shown]:
        """Where the container sees them. StartRefused, if it names a volume that the pod does not have."""
        by_name = {volume["name"]: volume for volume in self._listed}
        return [self._mount(mount, by_name, environment) for mount in container.get("volumeMounts") or ()]

    def _mount(self, mount: Frozen, by_name: Mapping[str, Frozen], environment: Mapping[str, str]) -> Shown:
        volume = by_name.get(mount["name"])
        if volume is None:
            raise StartRefused(f'volumeMounts names "{mount["name"]}", expected one of the pod\'s volumes')
        source = Path(volume["hostPath"]["path"]) if "hostPath" in volume else self._directory / volume["name"]
        inner = mount.get("subPath") or expand(mount.get("subPathExpr") or "", environment)
        if inner:
            source = _inside(source, inner)
            if not source.exists():
                source.mkdir(parents=True)
        read_only = bool(mount.get("readOnly")) or any(kind in volume for kind in READ_ONLY_KINDS)
        return Shown(str(source), mount["mountPath"], read_only)

    async def _files(self, volume: Frozen) -> Files:
        if "projected" in volume:
            mode = volume["projected"].get("defaultMode", DEFAULT_MODE)
            merged: Files = {}
            for source in volume["projected"].get("sources") or ():
                merged |= await self._source_files(source, mode)
            return merged
        if "emptyDir" in volume:
            return {}
        kind = next((kind for kind in READ_ONLY_KINDS if kind in volume), None)
        if kind is None:
            other = next((word for word in volume if word != "name"), "nothing")
            raise StartRefused(
                f'volume "{volume["name"]}" is {other}, expected emptyDir, hostPath, {" or ".join(READ_ONLY_KINDS)}'
            )
        return await self._source_files(volume, volume[kind].get("defaultMode", DEFAULT_MODE))

    async def _source_files(self, source: Frozen, mode: int) -> Files:
        if asked := source.get("serviceAccountToken"):
            expires_s = asked.get("expirationSeconds", TOKEN_S)
            token = await self._sources.token(self._pod, asked.get("audience", ""), expires_s)
            return {asked["path"]: File(token.encode(), mode)}
        if asked := source.get("downwardAPI"):
            return dict(self._fields(asked.get("items") or (), mode))
        for field, kind in (("configMap", "configmap"), ("secret", "secret")):
            if asked := source.get(field):
                name = asked.get("name") or asked.get("secretName") or ""
                found = await fetch(self._sources, self._pod, Reference(kind, name, asked.get("optional", False)))
                return _chosen(asked, data_of(found, kind), mode) if found is not None else {}
        return {}

    def _fields(self, items: Sequence[Frozen], mode: int) -> Iterator[tuple[str, File]]:
        for item in items:
            if asked := item.get("resourceFieldRef"):
                containers: Sequence[Frozen] = self._pod["spec"]["containers"]
                meant = next((one for one in containers if one["name"] == asked.get("containerName")), containers[0])
                value = resource_value(meant, self._place, asked["resource"], str(asked.get("divisor", "")))
            else:
                value = field_value(self._pod, self._place, item["fieldRef"]["fieldPath"])
            yield item["path"], File(value.encode(), item.get("mode", mode))


async def fetch(sources: Sources, pod: Frozen, reference: Reference) -> Frozen | None:
    """None for what is optional and not there; StartRefused, if it is needed."""
    namespace = pod["metadata"]["namespace"]
    find = sources.config_map if reference.kind == "configmap" else sources.secret
    found = await find(namespace, reference.name)
    if found is None and not reference.optional:
        raise StartRefused(f'{reference.kind} "{reference.name}" not found')
    return found


async def fetch_all(sources: Sources, pod: Frozen, references: Iterator[Reference]) -> Known:
    return {(one.kind, one.name): await fetch(sources, pod, one) for one in dict.fromkeys(references)}


def _chosen(asked: Frozen, data: Mapping[str, bytes], mode: int) -> Files:
    items: Sequence[Frozen] | None = asked.get("items")
    if not items:
        return {key: File(content, mode) for key, content in data.items()}
    files: Files = {}
    for item in items:
        if item["key"] not in data:
            if asked.get("optional"):
                continue
            raise StartRefused(f"references non-existent config key: {item['key']}")
        files[item["path"]] = File(data[item["key"]], item.get("mode", mode))
    return files


def _put_files(directory: Path, files: Files) -> None:
    for name, file in files.items():
        path = _inside(directory, name)
        path.parent.mkdir(parents=True, exist_ok=True)
        if path.is_file() and path.read_bytes() == file.content:
            continue
        fresh = path.with_name(f".{path.name}.new")
        fresh.unlink(missing_ok=True)
        with open(os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600), "wb") as target:
            os.fchmod(target.fileno(), file.mode)
            target.write(file.content)
        fresh.replace(path)
    for path in directory.rglob("*"):
        if path.is_file() and str(path.relative_to(directory)) not in files:
            path.unlink()


def _inside(directory: Path, inner: str) -> Path:
    if Path(inner).is_absolute() or ".." in Path(inner).parts:
        raise StartRefused(f'path is "{inner}", expected one below its volume, without ".."')
    return directory / inner


def _check_host_path(asked: Frozen) -> None:
    path, kind = Path(asked["path"]), asked.get("type", "")
    if kind == "DirectoryOrCreate":
        path.mkdir(parents=True, exist_ok=True)
    elif kind == "FileOrCreate":
        path.touch()
    is_right = {"Directory": path.is_dir, "File": path.is_file, "Socket": path.is_socket}.get(kind, path.exists)
    if not is_right():
        expected = kind.lower() or "file or directory"
        raise StartRefused(f"hostPath type check failed: {path} is not a {expected} of this machine")
